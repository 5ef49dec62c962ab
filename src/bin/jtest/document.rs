//! Synthetic documents: a path names the size, and path and size the bytes.

use std::sync::LazyLock;
use strata::base::prng::Prng;

/// Size classes: the cumulative share of documents, and the step in bytes of
/// the nine sizes in the class.
const CLASSES: [(f64, u64); 4] = [
    (0.35, 100),
    (0.85, 1000),
    (0.99, 10_000),
    (f64::INFINITY, 100_000),
];
/// Cumulative shares of the nine sizes of a class, as SPECweb weighs them.
const SIZES: [f64; 8] = [0.039, 0.098, 0.186, 0.363, 0.716, 0.834, 0.905, 0.955];
/// Spreads the sizes of a class over its documents; near a thousand times the
/// golden ratio, so that neighbours differ.
const SPREAD: f64 = 618.034;
/// The bytes 0 to 255 over and over: what follows the path in every body.
static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| (0..=255).cycle().take(1 << 16).collect());

/// A document: its path says all there is to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// `/<number>/<bytes>`.
    pub(crate) path: String,
    /// Bytes of the body.
    pub(crate) len: u64,
}

impl Document {
    /// The document with place `index` in a hot set of `hotset`.
    pub(crate) fn hot(index: u32, hotset: u32, docsize: i64) -> Self {
        let fraction = f64::from(index) / f64::from(hotset.max(1));
        Self::numbered(1.0 + fraction, fraction, docsize)
    }

    /// A document that is unlikely to be asked for again.
    pub(crate) fn cold(prng: &mut Prng, docsize: i64) -> Self {
        let fraction = prng.fraction();
        Self::numbered(2.0 + fraction, fraction, docsize)
    }

    fn numbered(number: f64, fraction: f64, docsize: i64) -> Self {
        let len = u64::try_from(docsize).unwrap_or_else(|_| size_of_share(fraction));
        Self {
            path: format!("/{number:.10}/{len}"),
            len,
        }
    }

    /// The document that a request's path names, or nothing if it names none.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let (number, len) = path.strip_prefix('/')?.split_once('/')?;
        number.parse::<f64>().ok()?;
        Some(Self {
            path: path.to_owned(),
            len: len.parse().ok()?,
        })
    }

    /// The body from `offset` on, as far as one piece goes; empty at its end.
    pub(crate) fn piece(&self, offset: u64) -> &[u8] {
        let left = self.len.saturating_sub(offset);
        let head = usize::try_from(offset).ok();
        let piece = match head.and_then(|at| self.path.as_bytes().get(at..)) {
            Some(rest) if !rest.is_empty() => rest,
            _ => pattern_from(offset - self.path.len() as u64),
        };
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        &piece[..piece.len().min(left)]
    }

    /// Whether `bytes` are this body's at `offset`.
    pub(crate) fn holds(&self, mut offset: u64, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let piece = self.piece(offset);
            let both = piece.len().min(bytes.len());
            if both == 0 || piece[..both] != bytes[..both] {
                return false;
            }
            offset += both as u64;
            bytes = &bytes[both..];
        }
        true
    }
}

/// The pattern as it goes on `offset` bytes behind the path.
fn pattern_from(offset: u64) -> &'static [u8] {
    let start = usize::try_from(offset % 256).unwrap_or(0);
    &PATTERN[start..]
}

/// The size, in bytes, of the document at `share` of the way through a set.
fn size_of_share(share: f64) -> u64 {
    let within = (share * SPREAD).fract();
    let nth = SIZES.iter().filter(|bound| within >= **bound).count() as u64 + 1;
    let class = CLASSES.iter().find(|(bound, _)| share < *bound);
    nth * class.map_or(0, |(_, step)| *step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_set_of_a_thousand_has_near_the_published_sizes() {
        let mut sizes: Vec<u64> = (0..1000).map(|i| Document::hot(i, 1000, -1).len).collect();
        sizes.sort_unstable();
        let total: u64 = sizes.iter().sum();
        assert_eq!((sizes[0], sizes[500]), (100, 4000));
        assert!((14_000_000..16_000_000).contains(&total), "{total} bytes");
    }

    #[test]
    fn a_body_is_its_path_and_then_all_byte_values() {
        let document = Document::of_path("/1.4310000000/300").unwrap();
        let mut body = Vec::new();
        while (body.len() as u64) < document.len {
            body.extend_from_slice(document.piece(body.len() as u64));
        }
        assert_eq!(body.len(), 300);
        assert!(body.starts_with(b"/1.4310000000/300\x00\x01\x02"));
        assert!(document.holds(0, &body));
        assert!(document.holds(100, &body[100..]));
        body[299] ^= 1;
        assert!(!document.holds(0, &body));
        assert!(!document.holds(1, &body[..40]));
    }

    #[test]
    fn bytes_beyond_the_end_are_not_the_documents() {
        let document = Document::of_path("/1.0/5").unwrap();
        assert!(document.holds(0, b"/1.0/"));
        assert!(!document.holds(0, b"/1.0/5"));
    }

    #[test]
    fn paths_that_name_no_document_are_refused() {
        for path in ["", "/", "/1.0", "/x/5", "/1.0/-5", "/1.0/5/6", "1.0/5"] {
            assert_eq!(Document::of_path(path), None, "{path}");
        }
    }
}
