//! The fixed prefix of a stored head.
//!
//! Numbers are little-endian; times are in seconds unless said.
//!
//! ## HeadPrefix
//! | offset | bytes | field | meaning |
//! |-------:|------:|-------|---------|
//! | 0 | 4 | magic | `SHED` |
//! | 4 | 2 | version | 1 |
//! | 6 | 2 | status | the response's status, 200..=999 |
//! | 8 | 4 | flags | see the `FLAG_` constants |
//! | 12 | 4 | age_at_receipt | age at `response_time` |
//! | 16 | 8 | request_time | when the request was sent, ms since 1970 |
//! | 24 | 8 | response_time | when the head, or the last 304, came, ms since 1970 |
//! | 32 | 8 | date | Date since 1970 |
//! | 40 | 8 | last_modified | Last-Modified since 1970, all ones for none |
//! | 48 | 4 | lifetime | freshness lifetime |
//! | 52 | 4 | stale_while_revalidate | its window, all ones for none |
//! | 56 | 4 | stale_if_error | its window, all ones for none |
//! | 60 | 1 | lifetime_source | 0 nothing, 1 s-maxage, 2 max-age, 3 Expires, 4 negative, 5 heuristic |
//! | 61 | 1 | origin_version | 9, 10, 11, 20 or 30 |
//! | 62 | 2 | reserved | 0 |
//! | 64 | 4 | etag_at | offset of ETag's value from the head's first byte |
//! | 68 | 4 | etag_len | its bytes, 0 for none |
//! | 72 | 4 | last_modified_at | offset of Last-Modified's value |
//! | 76 | 4 | last_modified_len | its bytes, 0 for none |
//! | 80 | 4 | fields_len | bytes of field lines, which follow the prefix |
//! | 84 | 4 | via_len | bytes of the received Via, which follow the field lines |

use super::Received;
use crate::base::clock::WallTime;
use crate::http::date;
use crate::http::freshness::LifetimeSource;
use crate::http::storable::Storable;
use crate::http::vary::{Vary, vary};
use ::http::header::{DATE, LAST_MODIFIED};
use ::http::{HeaderMap, Version};
use std::mem::{offset_of, size_of};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 4] = *b"SHED";

/// The version that this code writes and reads.
pub const VERSION: u16 = 1;

/// no-cache holds for the whole response.
pub const FLAG_NO_CACHE: u32 = 1;
/// must-revalidate or proxy-revalidate.
pub const FLAG_MUST_REVALIDATE: u32 = 1 << 1;
/// s-maxage.
pub const FLAG_S_MAXAGE: u32 = 1 << 2;
/// public.
pub const FLAG_PUBLIC: u32 = 1 << 3;
/// no-transform.
pub const FLAG_NO_TRANSFORM: u32 = 1 << 4;
/// immutable.
pub const FLAG_IMMUTABLE: u32 = 1 << 5;
/// The response has Vary.
pub const FLAG_VARIES: u32 = 1 << 6;

const NO_SECS: u32 = u32::MAX;
pub(super) const NO_TIME: u64 = u64::MAX;
pub(super) const PREFIX: usize = size_of::<HeadPrefix>();

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct HeadPrefix {
    pub(super) magic: [u8; 4],
    pub(super) version: U16,
    pub(super) status: U16,
    pub(super) flags: U32,
    pub(super) age_at_receipt: U32,
    pub(super) request_time: U64,
    pub(super) response_time: U64,
    pub(super) date: U64,
    pub(super) last_modified: U64,
    pub(super) lifetime: U32,
    pub(super) stale_while_revalidate: U32,
    pub(super) stale_if_error: U32,
    pub(super) lifetime_source: u8,
    pub(super) origin_version: u8,
    pub(super) reserved: [u8; 2],
    pub(super) etag_at: U32,
    pub(super) etag_len: U32,
    pub(super) last_modified_at: U32,
    pub(super) last_modified_len: U32,
    pub(super) fields_len: U32,
    pub(super) via_len: U32,
}

const _: () = {
    assert!(PREFIX == 88);
    assert!(offset_of!(HeadPrefix, request_time) == 16);
    assert!(offset_of!(HeadPrefix, lifetime_source) == 60);
    assert!(offset_of!(HeadPrefix, via_len) == 84);
};

/// Why bytes are no stored head. The cache's checksums hold, so it is another
/// version's head or a fault of ours: the object counts as a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoredHeadError {
    /// Fewer bytes than the prefix has.
    #[error("{0} bytes are too few for a stored head")]
    Short(usize),
    /// The first bytes are not the magic.
    #[error("no stored head: it begins with {0:02x?}")]
    Magic([u8; 4]),
    /// A version that this code does not read.
    #[error("stored head of version {0}")]
    Version(u16),
    /// A field of the prefix that no head has.
    #[error("stored head with {0} out of range")]
    Field(&'static str),
}

pub(super) fn prefix_of(received: &Received<'_>, storable: &Storable) -> HeadPrefix {
    let times = received.times;
    let directives = &storable.directives;
    let modified = date::field(received.headers, &LAST_MODIFIED, times.response);
    let generated = date::field(received.headers, &DATE, times.response);
    HeadPrefix {
        magic: MAGIC,
        version: VERSION.into(),
        status: received.status.as_u16().into(),
        flags: flags_of(received.headers, storable).into(),
        age_at_receipt: secs(storable.age_at_receipt),
        request_time: times.request.as_millis().into(),
        response_time: times.response.as_millis().into(),
        date: generated.unwrap_or(times.response).as_secs().into(),
        last_modified: modified.map_or(NO_TIME, WallTime::as_secs).into(),
        lifetime: secs(storable.lifetime.secs),
        stale_while_revalidate: directives
            .stale_while_revalidate
            .map_or(NO_SECS.into(), secs),
        stale_if_error: directives.stale_if_error.map_or(NO_SECS.into(), secs),
        lifetime_source: number_of(storable.lifetime.source),
        origin_version: version_number(received.version),
        reserved: [0; 2],
        etag_at: 0.into(),
        etag_len: 0.into(),
        last_modified_at: 0.into(),
        last_modified_len: 0.into(),
        fields_len: 0.into(),
        via_len: 0.into(),
    }
}

fn flags_of(headers: &HeaderMap, storable: &Storable) -> u32 {
    let said = &storable.directives;
    let rows = [
        (said.no_cache.is_whole(), FLAG_NO_CACHE),
        (
            said.must_revalidate || said.proxy_revalidate,
            FLAG_MUST_REVALIDATE,
        ),
        (said.s_maxage.is_some(), FLAG_S_MAXAGE),
        (said.public, FLAG_PUBLIC),
        (said.no_transform, FLAG_NO_TRANSFORM),
        (said.immutable, FLAG_IMMUTABLE),
        (vary(headers) != Vary::Nothing, FLAG_VARIES),
    ];
    let set = rows.iter().filter(|(holds, _)| *holds);
    set.fold(0, |flags, (_, flag)| flags | flag)
}

pub(super) fn check_prefix(prefix: &HeadPrefix, rest: usize) -> Result<(), StoredHeadError> {
    if prefix.magic != MAGIC {
        return Err(StoredHeadError::Magic(prefix.magic));
    }
    if prefix.version != VERSION {
        return Err(StoredHeadError::Version(prefix.version.get()));
    }
    let fields_end = PREFIX + to_usize(prefix.fields_len);
    let is_inside = |at: U32, len: U32| {
        let (at, len) = (to_usize(at), to_usize(len));
        len == 0 || (at >= PREFIX && at.saturating_add(len) <= fields_end)
    };
    let lengths = to_usize(prefix.fields_len).saturating_add(to_usize(prefix.via_len));
    let rows = [
        ("status", (200..=999).contains(&prefix.status.get())),
        (
            "lifetime_source",
            source_of(prefix.lifetime_source).is_some(),
        ),
        ("fields_len", lengths == rest),
        ("etag_at", is_inside(prefix.etag_at, prefix.etag_len)),
        (
            "last_modified_at",
            is_inside(prefix.last_modified_at, prefix.last_modified_len),
        ),
    ];
    match rows.iter().find(|(_, holds)| !holds) {
        Some((field, _)) => Err(StoredHeadError::Field(field)),
        None => Ok(()),
    }
}

const fn number_of(source: LifetimeSource) -> u8 {
    match source {
        LifetimeSource::Nothing => 0,
        LifetimeSource::SMaxAge => 1,
        LifetimeSource::MaxAge => 2,
        LifetimeSource::Expires => 3,
        LifetimeSource::Negative => 4,
        LifetimeSource::Heuristic => 5,
    }
}

pub(super) const fn source_of(number: u8) -> Option<LifetimeSource> {
    match number {
        0 => Some(LifetimeSource::Nothing),
        1 => Some(LifetimeSource::SMaxAge),
        2 => Some(LifetimeSource::MaxAge),
        3 => Some(LifetimeSource::Expires),
        4 => Some(LifetimeSource::Negative),
        5 => Some(LifetimeSource::Heuristic),
        _ => None,
    }
}

const fn version_number(version: Version) -> u8 {
    match version {
        Version::HTTP_09 => 9,
        Version::HTTP_10 => 10,
        Version::HTTP_2 => 20,
        Version::HTTP_3 => 30,
        _ => 11,
    }
}

/// Seconds that fit; more are lowered to the most that does not mean "none".
fn secs(secs: u64) -> U32 {
    u32::try_from(secs)
        .unwrap_or(NO_SECS)
        .min(NO_SECS - 1)
        .into()
}

pub(super) fn window(secs: U32) -> Option<u64> {
    (secs != NO_SECS).then(|| secs.get().into())
}

pub(super) fn to_u32(len: usize) -> U32 {
    u32::try_from(len)
        .expect("a head is bounded far below 4 GiB")
        .into()
}

pub(super) fn to_usize(len: U32) -> usize {
    usize::try_from(len.get()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<(String, usize, usize)> {
        let row = |line: &str| -> Option<(String, usize, usize)> {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let offset = cells.get(1)?.parse().ok()?;
            Some((
                (*cells.get(3)?).to_owned(),
                offset,
                cells.get(2)?.parse().ok()?,
            ))
        };
        include_str!("prefix.rs").lines().filter_map(row).collect()
    }

    macro_rules! fields {
        ($zero:ident: $($field:ident),+ $(,)?) => {
            vec![$((
                stringify!($field).to_owned(),
                offset_of!(HeadPrefix, $field),
                std::mem::size_of_val(&$zero.$field),
            )),+]
        };
    }

    #[test]
    fn the_table_in_the_module_doc_is_the_struct() {
        let zero = <HeadPrefix as zerocopy::FromZeros>::new_zeroed();
        let fields = fields![zero: magic, version, status, flags, age_at_receipt, request_time,
            response_time, date, last_modified, lifetime, stale_while_revalidate, stale_if_error,
            lifetime_source, origin_version, reserved, etag_at, etag_len, last_modified_at,
            last_modified_len, fields_len, via_len];
        assert_eq!(rows(), fields);
        let bytes: usize = fields.iter().map(|(_, _, bytes)| bytes).sum();
        assert_eq!(bytes, PREFIX, "no holes");
    }
}
