//! What an object is found by.

use bytes::Bytes;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

/// Seeds the placement hash apart from the key's own.
const PLACE_SEED: u64 = 0x5354_5241_5441_0001;

/// A key: its text, the text's hash, and the hash that places it on a stripe.
///
/// The hash is not collision-proof against an attacker, so whoever reads an
/// object back compares the text too. Everything of one URL (its marker and
/// its alternates) has the URL's `place`, and so lies on one stripe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    hash: u128,
    place: u64,
    text: Bytes,
}

impl CacheKey {
    /// The key of a URL in its canonical text.
    #[must_use]
    pub fn of_url(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        Self {
            hash: xxh3_128(&text),
            place: xxh3_64_with_seed(&text, PLACE_SEED),
            text,
        }
    }

    /// The key whose text lies on a device: of a URL or of an alternate.
    #[must_use]
    pub fn of_text(text: Bytes) -> Self {
        let url = text.split(|byte| *byte == 0).next().unwrap_or_default();
        Self {
            hash: xxh3_128(&text),
            place: xxh3_64_with_seed(url, PLACE_SEED),
            text,
        }
    }

    /// The key of one alternate of this URL: the marker's generation and the
    /// selected header values, joined to the URL's text by a NUL, which no URL
    /// holds.
    #[must_use]
    pub fn alternate(&self, generation: u64, selected: &[u8]) -> Self {
        let mut text = Vec::with_capacity(self.text.len() + selected.len() + 9);
        text.extend_from_slice(&self.text);
        text.push(0);
        text.extend_from_slice(&generation.to_le_bytes());
        text.extend_from_slice(selected);
        Self {
            hash: xxh3_128(&text),
            place: self.place,
            text: text.into(),
        }
    }

    /// The key of an alternate of this URL of which only the hash is known: it can
    /// be looked for and taken out by it, and is never read by it, for its text is
    /// the URL's.
    #[must_use]
    pub fn alternate_of(&self, hash: u128) -> Self {
        Self {
            hash,
            place: self.place,
            text: self.text.clone(),
        }
    }

    /// The 128-bit hash of the text.
    #[must_use]
    pub const fn hash(&self) -> u128 {
        self.hash
    }

    /// The hash that chooses the stripe.
    #[must_use]
    pub const fn place(&self) -> u64 {
        self.place
    }

    /// The whole text.
    #[must_use]
    pub const fn text(&self) -> &Bytes {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_again_from_its_text() {
        let url = CacheKey::of_url("http://a/");
        let alternate = url.alternate(1, b"gzip\0");
        for key in [url, alternate] {
            assert_eq!(CacheKey::of_text(key.text().clone()), key);
        }
    }

    #[test]
    fn alternates_share_the_place_of_their_url_but_not_its_hash() {
        let url = CacheKey::of_url("http://a/");
        let gzip = url.alternate(1, b"gzip");
        assert_eq!(url.place(), gzip.place());
        assert_ne!(url.hash(), gzip.hash());
        assert_ne!(gzip, url.alternate(2, b"gzip"));
        assert_ne!(gzip, url.alternate(1, b"br"));
    }
}
