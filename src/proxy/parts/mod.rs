//! Serving an object that is held in part: what is there from the cache, what
//! is missing from the origin, by Range under the representation's own tag, and
//! into the cache.
//!
//! ```text
//! PartsBody: has fragment n? ─ yes → read it
//!                            └ no  → somebody fetches it? ─ yes → wait
//!                                                         └ no  → claim it and those behind it,
//!                                                                 fetch them in a task: store each, hand it on
//! ```

mod body;
mod fetch;

pub(super) use body::PartsBody;
pub(super) use fetch::Means;

use super::fill::PartClaim;
use super::resume::Tail;
use crate::cache::Parts;
use crate::http::range::{Answer, Part};
use std::rc::Rc;

/// Fragments that one request to the origin asks for.
pub(super) const STRETCH_MAX: u64 = 16;
/// Fragments that are looked for in the directory before a body with more is
/// taken to have gaps.
const LOOKED_FOR_MAX: u64 = 4096;

/// Takes the fragments of a part that is coming, unless somebody was faster.
pub(super) fn take(means: &Rc<Means>, parts: &Parts, tail: Tail, part: &Part) {
    let size = parts.fragment_bytes();
    let indices = part.first / size..part.last / size + 1;
    let claim = means
        .table
        .claim(parts.id(), indices, |index| parts.has(index));
    if let PartClaim::Fetch(stretch, _) = claim {
        fetch::begin(Rc::clone(means), parts.clone(), stretch, tail);
    }
}

/// Whether any of what is to be sent is missing.
pub(super) fn lacks(parts: &Parts, answer: &Answer) -> bool {
    let lacks = |first: u64, last: u64| {
        let size = parts.fragment_bytes();
        let mut indices = first / size..last / size + 1;
        let many = indices.end - indices.start > LOOKED_FOR_MAX;
        many || !indices.all(|index| parts.has(index))
    };
    let part = |part: &Part| lacks(part.first, part.last);
    match answer {
        Answer::Whole => lacks(0, parts.body_len().saturating_sub(1)),
        Answer::Part(one) => part(one),
        Answer::Parts(several) => several.iter().any(part),
        Answer::NotSatisfiable => false,
    }
}
