//! The head of a stored response, as the bytes that the cache keeps as an
//! object's metadata.
//!
//! A fixed prefix holds what a hit needs to judge reuse; the field lines follow
//! as they go out on the wire, each `Name: value\r\n` and without the empty
//! line, then the Via that the response came with. On a hit nothing is copied
//! and nothing allocated.
//!
//! The field lines leave out what each answer says anew: hop-by-hop and
//! nominated fields, Age, Content-Length (the cache knows the body's length),
//! Trailer, Via, Warning (obsolete, and of this transfer only: RFC 9111 5.5), and
//! what storing drops. Server is the last of them, so that a
//! hit can leave it out. Date is always there: when the origin
//! sent none it is the time of receipt.

use super::conditional::{self, Validators};
use super::forwarding::{is_hop_by_hop, nominated};
use super::freshness::{Lifetime, LifetimeSource};
use super::head::check_field_line;
use super::policy::CachePolicy;
use super::reuse::Facts;
use super::storable::{NotStorable, Storable, Times, response_storable, unjudged};
use super::{date, wire};
use crate::base::clock::WallTime;
use ::http::header::{
    AGE, CONTENT_LENGTH, DATE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED, SERVER, TRAILER, VIA,
    WARNING,
};
use ::http::{HeaderMap, StatusCode, Version};
use bytes::Bytes;
use memchr::memrchr;
use prefix::{
    HeadPrefix, NO_TIME, PREFIX, check_prefix, prefix_of, source_of, to_u32, to_usize, window,
};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

mod prefix;

pub use prefix::{
    FLAG_IMMUTABLE, FLAG_MUST_REVALIDATE, FLAG_NO_CACHE, FLAG_NO_TRANSFORM, FLAG_PUBLIC,
    FLAG_S_MAXAGE, FLAG_VARIES, StoredHeadError, VERSION,
};

/// A response as it came from the origin.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The status.
    pub status: StatusCode,
    /// The version in which it came.
    pub version: Version,
    /// The fields as received, hop-by-hop ones included.
    pub headers: &'a HeaderMap,
    /// When.
    pub times: Times,
}

/// The head of a stored response.
#[derive(Clone, Debug)]
pub struct StoredHead {
    bytes: Bytes,
    prefix: HeadPrefix,
}

impl PartialEq for StoredHead {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl StoredHead {
    /// The head of `received`, stored as `storable` says.
    #[must_use]
    pub fn build(received: &Received<'_>, storable: &Storable) -> Self {
        Self::assemble(received, storable, &joined_via(received.headers))
    }

    fn assemble(received: &Received<'_>, storable: &Storable, via: &[u8]) -> Self {
        let mut prefix = prefix_of(received, storable);
        let mut out = vec![0; PREFIX];
        put_fields(&mut out, &mut prefix, received, storable);
        prefix.fields_len = to_u32(out.len() - PREFIX);
        prefix.via_len = to_u32(via.len());
        out.extend_from_slice(via);
        if let Some(start) = out.first_chunk_mut::<PREFIX>() {
            start.copy_from_slice(prefix.as_bytes());
        }
        Self {
            bytes: out.into(),
            prefix,
        }
    }

    /// Takes the head that [`Self::as_bytes`] gave; nothing is copied.
    ///
    /// # Errors
    /// Any [`StoredHeadError`]; no bytes make it panic.
    pub fn parse(bytes: Bytes) -> Result<Self, StoredHeadError> {
        let prefix = HeadPrefix::read_from_prefix(&bytes);
        let (prefix, rest) = prefix.map_err(|_| StoredHeadError::Short(bytes.len()))?;
        check_prefix(&prefix, rest.len())?;
        Ok(Self { bytes, prefix })
    }

    /// The head as the cache keeps it.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The field lines, ready to be written after the fields that each answer
    /// says anew and before the empty line. Shares the head's memory.
    #[must_use]
    pub fn field_lines(&self) -> Bytes {
        self.bytes
            .slice(PREFIX..PREFIX + to_usize(self.prefix.fields_len))
    }

    /// [`Self::field_lines`] without Server.
    #[must_use]
    pub fn field_lines_but_server(&self) -> Bytes {
        let lines = self.field_lines();
        let end = server_at(&lines);
        lines.slice(..end)
    }

    /// Whether the origin named itself by Server.
    #[must_use]
    pub fn has_server(&self) -> bool {
        let lines = self.field_lines();
        server_at(&lines) < lines.len()
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        // parse() and build() admit valid ones only.
        StatusCode::from_u16(self.prefix.status.get()).unwrap_or_default()
    }

    /// The version in which the origin sent the response.
    #[must_use]
    pub const fn origin_version(&self) -> Version {
        match self.prefix.origin_version {
            9 => Version::HTTP_09,
            10 => Version::HTTP_10,
            20 => Version::HTTP_2,
            30 => Version::HTTP_3,
            _ => Version::HTTP_11,
        }
    }

    /// When the request was sent and the head, or the last 304, received.
    #[must_use]
    pub fn times(&self) -> Times {
        Times {
            request: WallTime::from_millis(self.prefix.request_time.get()),
            response: WallTime::from_millis(self.prefix.response_time.get()),
        }
    }

    /// The `FLAG_` bits.
    #[must_use]
    pub fn flags(&self) -> u32 {
        self.prefix.flags.get()
    }

    /// What reuse depends on.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let prefix = &self.prefix;
        let has = |flag| self.flags() & flag != 0;
        Facts {
            response_time: self.times().response,
            age_at_receipt: prefix.age_at_receipt.get().into(),
            lifetime: Lifetime {
                secs: prefix.lifetime.get().into(),
                source: source_of(prefix.lifetime_source).unwrap_or(LifetimeSource::Nothing),
            },
            no_cache: has(FLAG_NO_CACHE),
            must_revalidate: has(FLAG_MUST_REVALIDATE),
            s_maxage: has(FLAG_S_MAXAGE),
            immutable: has(FLAG_IMMUTABLE),
            stale_while_revalidate: window(prefix.stale_while_revalidate),
            stale_if_error: window(prefix.stale_if_error),
        }
    }

    /// The value of ETag, quotes and `W/` included.
    #[must_use]
    pub fn etag(&self) -> Option<&[u8]> {
        self.part(self.prefix.etag_at, self.prefix.etag_len)
    }

    /// The value of Last-Modified as the origin wrote it.
    #[must_use]
    pub fn last_modified_text(&self) -> Option<&[u8]> {
        self.part(self.prefix.last_modified_at, self.prefix.last_modified_len)
    }

    /// Whether the origin can be asked if it is still the same (RFC 9110 8.8).
    #[must_use]
    pub fn has_validator(&self) -> bool {
        self.etag().is_some() || self.last_modified_text().is_some()
    }

    /// The Via that the response came with, its lines as one value; goes before
    /// our own member.
    #[must_use]
    pub fn via(&self) -> Option<&[u8]> {
        let start = PREFIX + to_usize(self.prefix.fields_len);
        self.bytes.get(start..).filter(|via| !via.is_empty())
    }

    /// What conditions and ranges of a client are compared with.
    #[must_use]
    pub fn validators(&self) -> Validators<'_> {
        let modified = self.prefix.last_modified.get();
        Validators {
            etag: self.etag(),
            last_modified: (modified != NO_TIME).then(|| WallTime::from_secs(modified)),
            date: WallTime::from_secs(self.prefix.date.get()),
        }
    }

    /// The stored fields as a map; allocates, so not for hits.
    #[must_use]
    pub fn header_map(&self) -> HeaderMap {
        let lines = self.field_lines();
        let mut map = HeaderMap::new();
        for line in lines.split(|b| *b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some((name, value)) = parsed_field(line) {
                map.append(name, value);
            }
        }
        map
    }

    /// The head after a 304 confirmed it (RFC 9111 3.2 and 4.3.4): the fields
    /// of the 304 replace the stored ones but for those of
    /// [`conditional::merge_304`], times, lifetime and Age start anew. Check
    /// [`conditional::confirms`] first.
    ///
    /// # Errors
    /// Why the response may no longer be stored: serve it this once
    /// ([`Self::served_with_304`]), and remove it.
    pub fn merged_with_304(
        &self,
        not_modified: &HeaderMap,
        times: Times,
        policy: &CachePolicy,
    ) -> Result<Self, NotStorable> {
        let merged = self.fields_after_304(not_modified, times);
        let storable = response_storable(self.status(), &merged, times, policy)?;
        Ok(self.after_304(not_modified, &merged, times, &storable))
    }

    /// As [`Self::merged_with_304`], to serve this once, whether or not it may be
    /// stored.
    #[must_use]
    pub fn served_with_304(
        &self,
        not_modified: &HeaderMap,
        times: Times,
        policy: &CachePolicy,
    ) -> Self {
        let merged = self.fields_after_304(not_modified, times);
        let storable = unjudged(self.status(), &merged, times, policy);
        self.after_304(not_modified, &merged, times, &storable)
    }

    fn fields_after_304(&self, not_modified: &HeaderMap, times: Times) -> HeaderMap {
        let mut merged = self.header_map();
        conditional::merge_304(&mut merged, not_modified);
        if date::field(not_modified, &DATE, times.response).is_none() {
            merged.remove(DATE);
        }
        merged
    }

    fn after_304(
        &self,
        not_modified: &HeaderMap,
        merged: &HeaderMap,
        times: Times,
        storable: &Storable,
    ) -> Self {
        let received = Received {
            status: self.status(),
            version: self.origin_version(),
            headers: merged,
            times,
        };
        let via = joined_via(not_modified);
        let via = if via.is_empty() {
            self.via().unwrap_or_default()
        } else {
            &via
        };
        Self::assemble(&received, storable, via)
    }

    fn part(&self, at: U32, len: U32) -> Option<&[u8]> {
        let start = to_usize(at);
        let found = self.bytes.get(start..start.checked_add(to_usize(len))?)?;
        Some(found).filter(|found| !found.is_empty())
    }
}

/// Writes the field lines after the prefix, and where the validators are.
fn put_fields(
    out: &mut Vec<u8>,
    prefix: &mut HeadPrefix,
    received: &Received<'_>,
    storable: &Storable,
) {
    let headers = received.headers;
    let mut dropped = nominated(headers);
    dropped.extend(storable.dropped.iter().cloned());
    dropped.extend([AGE, CONTENT_LENGTH, TRAILER, VIA, WARNING]);
    if date::field(headers, &DATE, received.times.response).is_none() {
        dropped.push(DATE);
        put_date(out, received.times.response);
    }
    let (servers, others): (Vec<_>, Vec<_>) = headers
        .iter()
        .filter(|(name, _)| !is_hop_by_hop(name) && !dropped.contains(name))
        .partition(|(name, _)| *name == SERVER);
    for (name, value) in others.into_iter().chain(servers) {
        let at = to_u32(wire::put_field(out, name, value.as_bytes()));
        let len = to_u32(value.len());
        if *name == ETAG && prefix.etag_len == 0 {
            (prefix.etag_at, prefix.etag_len) = (at, len);
        } else if *name == LAST_MODIFIED && prefix.last_modified_len == 0 {
            (prefix.last_modified_at, prefix.last_modified_len) = (at, len);
        }
    }
}

/// Where the lines of Server begin, which are the last; the length if there are
/// none.
fn server_at(lines: &[u8]) -> usize {
    const NAME: &[u8] = b"Server: ";
    let mut end = lines.len();
    while let Some(before) = lines.get(..end).and_then(|lines| lines.strip_suffix(b"\n")) {
        let start = memrchr(b'\n', before).map_or(0, |at| at + 1);
        let is_server = lines
            .get(start..end)
            .is_some_and(|line| line.starts_with(NAME));
        if !is_server {
            break;
        }
        end = start;
    }
    end
}

fn put_date(out: &mut Vec<u8>, at: WallTime) {
    wire::put_field(out, &DATE, date::format(at).as_bytes());
}

fn parsed_field(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = check_field_line(line).ok()?;
    let name = HeaderName::from_bytes(name).ok()?;
    Some((name, HeaderValue::from_bytes(value).ok()?))
}

fn joined_via(headers: &HeaderMap) -> Vec<u8> {
    let lines: Vec<&[u8]> = headers
        .get_all(VIA)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    lines.join(&b", "[..])
}

#[cfg(test)]
mod tests;
