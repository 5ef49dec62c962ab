//! What a URL whose responses vary leads to: the fields that select one.
//!
//! Bytes: the magic, the generation (8, little-endian), the field names, each
//! ending in a line feed, sorted; a line feed; then the selections of the known
//! alternates, the newest first, each after its length (4, little-endian).

use crate::base::prng;
use crate::cache::CacheKey;
use crate::http::policy::NormalizeAcceptEncoding;
use crate::http::vary;
use bytes::Bytes;
use http::{HeaderMap, HeaderName};

const MAGIC: &[u8; 4] = b"VAR2";
/// The most fields that may select: each costs every hit a comparison.
const FIELDS_MAX: usize = 32;
/// The most bytes of selections that are remembered.
const KNOWN_BYTES_MAX: usize = 32 * 1024;

/// A marker (RFC 9111 4.1). Its generation is part of every alternate's key, so
/// removing the marker makes all alternates unreachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    generation: u64,
    fields: Vec<HeaderName>,
    /// What selects each alternate stored, the newest first.
    known: Vec<Bytes>,
}

impl Marker {
    /// Reads what [`Marker::to_bytes`] gave; `None` for anything else.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (generation, names) = rest.split_first_chunk::<8>()?;
        let (fields, known) = field_names(names)?;
        Some(Self {
            generation: u64::from_le_bytes(*generation),
            fields,
            known: selections(known)?,
        })
    }

    /// The marker as the cache keeps it.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        for name in &self.fields {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.push(b'\n');
        }
        bytes.push(b'\n');
        for known in &self.known {
            let length = u32::try_from(known.len()).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(known);
        }
        bytes.into()
    }

    /// The marker that also selects by `fields`: `known` itself if it does so
    /// already, else a new one, for older alternates were told apart by less.
    /// `None` when that would be too many fields.
    #[must_use]
    pub fn with(known: Option<&Self>, fields: &[HeaderName]) -> Option<Self> {
        let mut all: Vec<_> = known.map(|known| known.fields.clone()).unwrap_or_default();
        all.extend_from_slice(fields);
        all.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        all.dedup();
        if let Some(known) = known.filter(|known| known.fields == all) {
            return Some(known.clone());
        }
        (all.len() <= FIELDS_MAX).then(|| Self {
            generation: prng::system_u64(),
            fields: all,
            known: Vec::new(),
        })
    }

    /// Notes that `request` selects an alternate that is stored now. `max`
    /// alternates are kept, 0 for any number; gives the keys of those that are
    /// too many, the oldest.
    #[must_use]
    pub fn note(
        &mut self,
        url: &CacheKey,
        (request, rule): (&HeaderMap, NormalizeAcceptEncoding),
        max: usize,
    ) -> Vec<CacheKey> {
        let selected = Bytes::from(selected(&self.fields, request, rule));
        self.known.retain(|known| *known != selected);
        self.known.insert(0, selected);
        let mut kept = if max == 0 { usize::MAX } else { max };
        let bytes = |known: &[Bytes]| known.iter().map(Bytes::len).sum::<usize>();
        kept = kept.min(self.known.len());
        while kept > 1 && bytes(self.known.get(..kept).unwrap_or_default()) > KNOWN_BYTES_MAX {
            kept -= 1;
        }
        let dropped = self.known.split_off(kept);
        let keys = dropped
            .iter()
            .map(|old| url.alternate(self.generation, old));
        keys.collect()
    }

    /// Whether `other` tells the alternates apart by the same keys.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.generation == other.generation && self.fields == other.fields
    }

    /// Whether alternates are told apart by each of `fields`.
    #[must_use]
    pub fn tells(&self, fields: &[HeaderName]) -> bool {
        fields.iter().all(|field| self.fields.contains(field))
    }

    /// The key of the alternate that `request` selects.
    #[must_use]
    pub fn alternate(
        &self,
        url: &CacheKey,
        request: &HeaderMap,
        rule: NormalizeAcceptEncoding,
    ) -> CacheKey {
        let selected = selected(&self.fields, request, rule);
        url.alternate(self.generation, &selected)
    }
}

/// The field names up to the empty line, and what comes after it.
fn field_names(bytes: &[u8]) -> Option<(Vec<HeaderName>, &[u8])> {
    let mut fields = Vec::new();
    let mut rest = bytes;
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (name, after) = rest.split_at_checked(end)?;
        rest = after.strip_prefix(b"\n")?;
        if name.is_empty() {
            return Some((fields, rest)).filter(|(fields, _)| !fields.is_empty());
        }
        fields.push(HeaderName::from_bytes(name).ok()?);
    }
}

fn selections(mut bytes: &[u8]) -> Option<Vec<Bytes>> {
    let mut known = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (one, rest) = rest.split_at_checked(length)?;
        known.push(Bytes::copy_from_slice(one));
        bytes = rest;
    }
    Some(known)
}

/// The values of `fields` in `request`, Accept-Encoding in its normal form.
#[must_use]
pub fn selected(
    fields: &[HeaderName],
    request: &HeaderMap,
    rule: NormalizeAcceptEncoding,
) -> Vec<u8> {
    let mut chosen = HeaderMap::new();
    for name in fields {
        for value in request.get_all(name) {
            chosen.append(name, value.clone());
        }
    }
    vary::normalize_accept_encoding(&mut chosen, rule);
    vary::selected(fields, &chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::{ACCEPT, ACCEPT_ENCODING};

    #[test]
    fn a_marker_is_read_as_it_was_written() {
        let mut marker = Marker::with(None, &[ACCEPT_ENCODING, ACCEPT]).unwrap();
        let request = (&HeaderMap::new(), NormalizeAcceptEncoding::Gzip);
        assert_eq!(marker.note(&CacheKey::of_url("http://a/"), request, 5), []);
        assert_eq!(Marker::parse(&marker.to_bytes()), Some(marker.clone()));
        let bytes = marker.to_bytes();
        for len in 0..bytes.len() {
            assert_ne!(Marker::parse(&bytes[..len]), Some(marker.clone()), "{len}");
        }
        assert_eq!(Marker::parse(b"VAR1xxxxxxxxa\n\n"), None);
    }

    #[test]
    fn a_wider_vary_makes_a_new_generation_and_a_narrower_one_none() {
        let one = Marker::with(None, &[ACCEPT]).unwrap();
        let wide = Marker::with(Some(&one), &[ACCEPT_ENCODING]).unwrap();
        assert_ne!(one.generation, wide.generation);
        assert_eq!(Marker::with(Some(&wide), &[ACCEPT]), Some(wide.clone()));
    }

    #[test]
    fn too_many_fields_make_no_marker() {
        let names = |n: u32| format!("x-{n}").parse::<HeaderName>().unwrap();
        let fields: Vec<_> = (0..33).map(names).collect();
        assert_eq!(Marker::with(None, &fields), None);
    }

    #[test]
    fn alternates_are_selected_by_normal_forms() {
        let marker = Marker::with(None, &[ACCEPT_ENCODING]).unwrap();
        let url = CacheKey::of_url("http://a/");
        let of = |value: &'static str| {
            let mut request = HeaderMap::new();
            request.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            marker.alternate(&url, &request, NormalizeAcceptEncoding::Gzip)
        };
        assert_eq!(of("gzip, br"), of("deflate,gzip"));
        assert_ne!(of("gzip"), of("br"));
    }
}
