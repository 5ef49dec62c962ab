//! What a URL whose responses vary leads to: the fields that select one.
//!
//! Bytes: the magic, the generation (8, little-endian), then the field names,
//! each ending in a line feed, sorted.

use crate::base::prng;
use crate::cache::CacheKey;
use crate::http::policy::NormalizeAcceptEncoding;
use crate::http::vary;
use bytes::Bytes;
use http::{HeaderMap, HeaderName};

const MAGIC: &[u8; 4] = b"VAR1";
/// The most fields that may select: each costs every hit a comparison.
const FIELDS_MAX: usize = 32;

/// A marker (RFC 9111 4.1). Its generation is part of every alternate's key, so
/// removing the marker makes all alternates unreachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    generation: u64,
    fields: Vec<HeaderName>,
}

impl Marker {
    /// Reads what [`Marker::to_bytes`] gave; `None` for anything else.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (generation, names) = rest.split_first_chunk::<8>()?;
        let names = names.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
        let fields: Option<Vec<_>> = names
            .map(|name| HeaderName::from_bytes(name).ok())
            .collect();
        Some(Self {
            generation: u64::from_le_bytes(*generation),
            fields: fields?,
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
        })
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
        let marker = Marker::with(None, &[ACCEPT_ENCODING, ACCEPT]).unwrap();
        assert_eq!(Marker::parse(&marker.to_bytes()), Some(marker.clone()));
        let bytes = marker.to_bytes();
        for len in 0..bytes.len() {
            assert_ne!(Marker::parse(&bytes[..len]), Some(marker.clone()), "{len}");
        }
        assert_eq!(Marker::parse(b"VAR2xxxxxxxxa\n"), None);
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
