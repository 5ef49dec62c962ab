//! What a URL whose responses vary leads to: the fields that select one.
//!
//! Bytes: the magic, the generation (8, little-endian), the field names, each
//! ending in a line feed, sorted; a line feed; then the digests of the known
//! alternates (16 each, little-endian), those first that go last. A marker of
//! the version before, which had what selects them there, is read without them.

use crate::base::prng;
use crate::cache::CacheKey;
use crate::http::policy::NormalizeAcceptEncoding;
use crate::http::vary;
use bytes::Bytes;
use http::{HeaderMap, HeaderName};

const MAGIC: &[u8; 4] = b"VAR3";
const OLDER_MAGIC: &[u8; 4] = b"VAR2";
/// The most fields that may select: each costs every hit a comparison.
const FIELDS_MAX: usize = 32;
/// The most bytes that their names may have.
const NAMES_MAX: usize = 2048;
/// The most bytes of a marker: it is read before every hit.
const MARKER_MAX: usize = 4096;
/// Bytes of a digest.
const DIGEST_BYTES: usize = 16;

/// A marker (RFC 9111 4.1). Its generation is part of every alternate's key, so
/// removing the marker makes all alternates unreachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    generation: u64,
    fields: Vec<HeaderName>,
    /// The hashes of the keys of the alternates stored; the last one goes first.
    known: Vec<u128>,
}

impl Marker {
    /// Reads what [`Marker::to_bytes`] gave; `None` for anything else.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (generation, names) = rest.split_first_chunk::<8>()?;
        let (fields, known) = field_names(names)?;
        let known = match magic {
            MAGIC => digests(known)?,
            OLDER_MAGIC => Vec::new(),
            _ => return None,
        };
        Some(Self {
            generation: u64::from_le_bytes(*generation),
            fields,
            known,
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
            bytes.extend_from_slice(&known.to_le_bytes());
        }
        bytes.into()
    }

    /// The marker that also selects by `fields`: `known` itself if it does so
    /// already, else a new one, for older alternates were told apart by less.
    /// `None` when that would be too many fields, or too long names.
    #[must_use]
    pub fn with(known: Option<&Self>, fields: &[HeaderName]) -> Option<Self> {
        let mut all: Vec<_> = known.map(|known| known.fields.clone()).unwrap_or_default();
        all.extend_from_slice(fields);
        all.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        all.dedup();
        if let Some(known) = known.filter(|known| known.fields == all) {
            return Some(known.clone());
        }
        let names: usize = all.iter().map(|name| name.as_str().len() + 1).sum();
        (all.len() <= FIELDS_MAX && names <= NAMES_MAX).then(|| Self {
            generation: prng::system_u64(),
            fields: all,
            known: Vec::new(),
        })
    }

    /// Notes that `request` selects an alternate that is stored now. `max`
    /// alternates are kept, 0 for any number; gives the keys of those that are
    /// too many, to be taken out. Those go first that `is_used` does not say were
    /// used since they were stored, the oldest of them first. What `max` allows
    /// and the marker has no room for is forgotten, and found until the cursor
    /// comes to it.
    #[must_use]
    pub fn note(
        &mut self,
        url: &CacheKey,
        (request, rule): (&HeaderMap, NormalizeAcceptEncoding),
        max: usize,
        is_used: impl Fn(&CacheKey) -> bool,
    ) -> Vec<CacheKey> {
        let noted = self.alternate(url, request, rule).hash();
        self.known.retain(|known| *known != noted);
        let kept = self.room().min(if max == 0 { usize::MAX } else { max });
        if self.known.len() >= kept {
            let unused = |known: &u128| !is_used(&url.alternate_of(*known));
            self.known.sort_by_cached_key(unused);
        }
        self.known.insert(0, noted);
        let mut dropped = self.known.split_off(kept.min(self.known.len()));
        dropped.retain(|_| kept == max);
        let keys = dropped.into_iter().map(|old| url.alternate_of(old));
        keys.collect()
    }

    /// Alternates that it has room for.
    fn room(&self) -> usize {
        let names = self.fields.iter().map(|name| name.as_str().len() + 1);
        let rest = MARKER_MAX - MAGIC.len() - size_of_val(&self.generation) - 1;
        rest.saturating_sub(names.sum()) / DIGEST_BYTES
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

fn digests(bytes: &[u8]) -> Option<Vec<u128>> {
    let (digests, rest) = bytes.as_chunks::<DIGEST_BYTES>();
    let digests = digests.iter().map(|digest| u128::from_le_bytes(*digest));
    rest.is_empty().then(|| digests.collect())
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
        let url = CacheKey::of_url("http://a/");
        assert_eq!(marker.note(&url, request, 5, |_| false), []);
        assert_eq!(Marker::parse(&marker.to_bytes()), Some(marker.clone()));
        let bytes = marker.to_bytes();
        for len in 0..bytes.len() {
            assert_ne!(Marker::parse(&bytes[..len]), Some(marker.clone()), "{len}");
        }
        assert_eq!(Marker::parse(b"VAR1xxxxxxxxa\n\n"), None);
    }

    #[test]
    fn a_marker_of_the_version_before_is_read_without_what_selects() {
        let old = b"VAR2\x05\0\0\0\0\0\0\0accept\n\n\x03\0\0\0abc";
        let marker = Marker::parse(old).unwrap();
        assert_eq!((marker.generation, marker.known.len()), (5, 0));
        assert!(marker.tells(&[ACCEPT]));
    }

    fn note(marker: &mut Marker, n: u32, max: usize, used: &[u128]) -> Vec<u128> {
        let url = CacheKey::of_url("http://a/");
        let mut request = HeaderMap::new();
        let long = format!("{n}{}", "x".repeat(300));
        request.insert(ACCEPT, HeaderValue::from_str(&long).unwrap());
        let request = (&request, NormalizeAcceptEncoding::Gzip);
        let dropped = marker.note(&url, request, max, |key| used.contains(&key.hash()));
        dropped.iter().map(CacheKey::hash).collect()
    }

    #[test]
    fn of_too_many_alternates_those_go_first_that_nobody_used() {
        let mut marker = Marker::with(None, &[ACCEPT]).unwrap();
        for n in 0..4 {
            assert_eq!(note(&mut marker, n, 4, &[]), []);
        }
        let [three, two, one, zero] = *marker.known.clone() else {
            panic!("four were noted");
        };
        assert_eq!(note(&mut marker, 4, 4, &[zero, two]), [one]);
        assert_eq!(note(&mut marker, 5, 4, &[zero, two]), [three]);
        // All of them were by now: the one of which that is known last.
        let all: Vec<u128> = marker.known.clone();
        let last = *all.last().unwrap();
        assert!(last != zero && last != two);
        assert_eq!(note(&mut marker, 6, 4, &all), [last]);
    }

    #[test]
    fn a_marker_never_has_more_than_four_kibibytes() {
        let names = |n: u32| format!("x-{n:0>56}").parse::<HeaderName>().unwrap();
        let mut fields: Vec<_> = (0..31).map(names).collect();
        fields.push(ACCEPT);
        let mut marker = Marker::with(None, &fields).unwrap();
        for n in 0..1000 {
            // Forgotten, and still found.
            assert_eq!(note(&mut marker, n, 1000, &[]), []);
        }
        assert!((4000..=4096).contains(&marker.to_bytes().len()));
        let long: HeaderName = "y".repeat(NAMES_MAX).parse().unwrap();
        assert_eq!(Marker::with(None, &[long]), None);
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
