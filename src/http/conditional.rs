//! Conditions: those of clients against a stored response (RFC 9110 13,
//! RFC 9111 4.3.2), and ours for revalidating one (RFC 9111 4.3.1 to 4.3.4).

use super::date;
use super::forwarding::{is_hop_by_hop, nominated};
use super::stored::StoredHead;
use crate::base::clock::WallTime;
use ::http::header::{
    self, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, HeaderName, HeaderValue,
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, TRAILER, VIA,
};
use ::http::{HeaderMap, Method, StatusCode};

/// What a stored response is told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The value of ETag, quotes and `W/` included.
    pub etag: Option<&'a [u8]>,
    /// Last-Modified, when it is a date.
    pub last_modified: Option<WallTime>,
    /// Date, or the time of receipt in its place.
    pub date: WallTime,
}

/// What the client's preconditions come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Answer as if there were none.
    Pass,
    /// Answer 304.
    NotModified,
    /// Answer 412.
    Failed,
}

/// Evaluates a client's preconditions, in the order of RFC 9110 13.2.2, for a
/// stored response of `status`. They count only where the answer would
/// otherwise be a 2xx (13.2.1).
///
/// To If-Modified-Since a response without Last-Modified counts as modified at
/// its Date (RFC 9111 4.3.2). If-Range is for [`if_range_holds`].
#[must_use]
pub fn evaluate(
    method: &Method,
    request: &HeaderMap,
    status: StatusCode,
    stored: &Validators<'_>,
) -> Precondition {
    if !status.is_success() {
        return Precondition::Pass;
    }
    if fails(request, stored) {
        return Precondition::Failed;
    }
    let is_read = *method == Method::GET || *method == Method::HEAD;
    match (is_unchanged(request, stored, is_read), is_read) {
        (false, _) => Precondition::Pass,
        (true, true) => Precondition::NotModified,
        (true, false) => Precondition::Failed,
    }
}

/// If-Match by strong comparison, else If-Unmodified-Since, which does not count
/// without Last-Modified (RFC 9110 13.1.4).
fn fails(request: &HeaderMap, stored: &Validators<'_>) -> bool {
    if request.contains_key(IF_MATCH) {
        let strong = |tag: &[u8]| stored.etag.is_some_and(|etag| strongly_equal(tag, etag));
        return !any_tag(request, &IF_MATCH, strong);
    }
    let until = date::field(request, &IF_UNMODIFIED_SINCE, stored.date);
    until
        .zip(stored.last_modified)
        .is_some_and(|(until, modified)| modified > until)
}

/// If-None-Match by weak comparison, else If-Modified-Since of GET and HEAD.
fn is_unchanged(request: &HeaderMap, stored: &Validators<'_>, is_read: bool) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        let weak = |tag: &[u8]| stored.etag.is_some_and(|etag| weakly_equal(tag, etag));
        return any_tag(request, &IF_NONE_MATCH, weak);
    }
    let since = date::field(request, &IF_MODIFIED_SINCE, stored.date);
    is_read && since.is_some_and(|since| stored.last_modified.unwrap_or(stored.date) <= since)
}

/// Whether Range counts in view of If-Range (RFC 9110 13.1.5): there is none,
/// or it names the stored response strongly.
///
/// A date is strong when it is that of Last-Modified and at least a second
/// before Date (8.8.2.2).
#[must_use]
pub fn if_range_holds(request: &HeaderMap, stored: &Validators<'_>) -> bool {
    let mut lines = request.get_all(IF_RANGE).iter();
    let Some(value) = lines.next() else {
        return true;
    };
    let value = value.as_bytes().trim_ascii();
    if lines.next().is_some() {
        return false;
    }
    if let Some(since) = date::parse(value, stored.date) {
        return stored.last_modified == Some(since) && since < stored.date;
    }
    stored.etag.is_some_and(|etag| strongly_equal(value, etag))
}

/// Strong comparison (RFC 9110 8.8.3.2): neither is weak, and they are equal.
#[must_use]
pub fn strongly_equal(a: &[u8], b: &[u8]) -> bool {
    !is_weak(a) && a == b
}

/// Weak comparison: equal but for `W/`.
#[must_use]
pub fn weakly_equal(a: &[u8], b: &[u8]) -> bool {
    opaque(a) == opaque(b)
}

fn is_weak(tag: &[u8]) -> bool {
    tag.starts_with(b"W/")
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Whether the list is `*`, or a tag in it matches.
fn any_tag(request: &HeaderMap, name: &HeaderName, matches: impl Fn(&[u8]) -> bool) -> bool {
    request.get_all(name).iter().any(|line| {
        let mut rest = line.as_bytes();
        while let Some((tag, after)) = next_tag(rest) {
            if tag == b"*" || matches(tag) {
                return true;
            }
            rest = after;
        }
        false
    })
}

/// The next tag of a list and what follows it. A quoted tag may hold commas; one
/// without quotes, which some origins send, ends at a comma.
fn next_tag(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = list
        .iter()
        .position(|b| !matches!(b, b',' | b' ' | b'\t'))?;
    let list = list.get(start..)?;
    let quote = if is_weak(list) { 2 } else { 0 };
    if list.get(quote) == Some(&b'"') {
        let inner = list.get(quote + 1..)?;
        if let Some(len) = inner.iter().position(|b| *b == b'"') {
            return list.split_at_checked(quote + len + 2);
        }
    }
    let end = list.iter().position(|b| *b == b',').unwrap_or(list.len());
    let (tag, after) = list.split_at_checked(end)?;
    Some((tag.trim_ascii_end(), after))
}

/// Makes a client's request one that revalidates `stored` (RFC 9111 4.3.1): its
/// own conditions and Range go, the stored validators come. False when there is
/// none: then the request fetches anew.
pub fn set_revalidation(request: &mut HeaderMap, stored: &StoredHead) -> bool {
    remove_conditions(request);
    let tag = insert(request, IF_NONE_MATCH, stored.etag());
    let is_date = stored.validators().last_modified.is_some();
    let modified = stored.last_modified_text().filter(|_| is_date);
    insert(request, IF_MODIFIED_SINCE, modified) || tag
}

/// Takes a client's conditions and Range off a request, so that its answer is
/// the whole representation.
pub fn remove_conditions(request: &mut HeaderMap) {
    let names = [
        IF_MATCH,
        IF_MODIFIED_SINCE,
        IF_NONE_MATCH,
        IF_RANGE,
        IF_UNMODIFIED_SINCE,
        RANGE,
    ];
    for name in names {
        request.remove(name);
    }
}

fn insert(request: &mut HeaderMap, name: HeaderName, value: Option<&[u8]>) -> bool {
    let value = value.and_then(|value| HeaderValue::from_bytes(value).ok());
    match value {
        Some(value) => {
            request.insert(name, value);
            true
        }
        None => false,
    }
}

/// Whether a 304 speaks of the stored response (RFC 9111 4.3.4): it names no
/// other ETag, nor a strong one where none is stored. When false, fetch the
/// representation without conditions.
///
/// A strong tag whose weak form is stored confirms what was asked for by that
/// very tag, as servers answer that weaken it when they compress;
/// [`merge_304`] leaves the stored one weak.
#[must_use]
pub fn confirms(not_modified: &HeaderMap, stored: &Validators<'_>) -> bool {
    match (not_modified.get(ETAG), stored.etag) {
        (Some(new), Some(old)) => weakly_equal(new.as_bytes(), old),
        (Some(new), None) => is_weak(new.as_bytes()),
        (None, _) => true,
    }
}

/// Whether the answer to a HEAD speaks of the stored response of `length` bytes
/// (RFC 9111 4.3.5): it has the same status, and what it tells of validators,
/// encoding and length is what is stored. When false, what is stored is stale.
#[must_use]
pub fn head_confirms(
    (status, head): (StatusCode, &HeaderMap),
    stored: &StoredHead,
    length: u64,
) -> bool {
    let fields = stored.header_map();
    let same = |name: HeaderName| {
        let told = head.get(&name);
        told.is_none() || told == fields.get(&name)
    };
    let told_length = head
        .get(CONTENT_LENGTH)
        .map(|value| value.as_bytes().trim_ascii());
    status == stored.status()
        && told_length.is_none_or(|told| told == length.to_string().as_bytes())
        && confirms(head, &stored.validators())
        && (stored.etag().is_some() || !head.contains_key(ETAG))
        && [header::LAST_MODIFIED, CONTENT_ENCODING]
            .into_iter()
            .all(same)
}

/// Replaces stored fields by those of a 304 (RFC 9111 3.2), each name's lines
/// as a whole, so that the head does not grow with each merge.
///
/// Never touched: Content-Length, Content-Encoding and Content-Range, which
/// belong to the stored body; a weak ETag by a strong one, which that body was
/// never sent with; and what is for one connection only.
pub fn merge_304(stored: &mut HeaderMap, not_modified: &HeaderMap) {
    let kept = [
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        CONTENT_RANGE,
        TRAILER,
        VIA,
    ];
    let nominated = nominated(not_modified);
    let keeps_tag = strengthens(stored, not_modified);
    for name in not_modified.keys() {
        let is_kept = kept.contains(name) || keeps_tag && *name == ETAG;
        if is_kept || is_hop_by_hop(name) || nominated.contains(name) {
            continue;
        }
        replace(stored, name, not_modified);
    }
}

/// Whether a body stored under a weak ETag would get a strong one.
fn strengthens(stored: &HeaderMap, not_modified: &HeaderMap) -> bool {
    let weak = |fields: &HeaderMap| fields.get(ETAG).map(|tag| is_weak(tag.as_bytes()));
    weak(stored) == Some(true) && weak(not_modified) == Some(false)
}

/// Keeps the field's place among the others.
fn replace(stored: &mut HeaderMap, name: &HeaderName, not_modified: &HeaderMap) {
    let mut lines = not_modified.get_all(name).iter().cloned();
    if let Some(first) = lines.next() {
        stored.insert(name, first);
    }
    for more in lines {
        stored.append(name, more);
    }
}

/// The fields of a stored response that a 304 to a client carries
/// (RFC 9110 15.4.5).
pub const NOT_MODIFIED_FIELDS: [HeaderName; 7] = [
    header::CACHE_CONTROL,
    header::CONTENT_LOCATION,
    DATE,
    ETAG,
    header::EXPIRES,
    header::VARY,
    header::LAST_MODIFIED,
];

#[cfg(test)]
mod tests;
