//! Floor 2: tiers, the RAM cache, stripes and their directory.
//!
//! The cache never sees a request or a setting's name: it takes options,
//! keys and bytes.

pub mod check;
pub mod directory;
pub mod format;
mod hosting;
pub mod inspect;
mod invalidation;
pub mod key;
mod known;
pub mod object;
pub mod options;
mod placement;
pub mod plan;
pub mod ram;
mod span;
pub mod store;
pub mod stripe;
pub mod tier;
mod volume;

pub use hosting::{Hosting, Hosts, Volumes};
pub use inspect::{
    CacheStatus, Readiness, SpanOutcome, SpanReport, SpanState, SpanStatus, StripeStatus,
};
pub use key::CacheKey;
pub use object::{
    BodyError, BodyReader, CopyRef, Hit, Miss, NewObject, NotStored, ObjectKind, ObjectWriter,
    Parts, PurgeError, Room,
};
pub use options::{
    AioMode, CacheOptions, LiveOptions, RamOptions, SpanOptions, TierOptions, VolumeOptions,
    VolumeSize,
};
pub(crate) use span::{SpanError, check as check_span};
pub use store::{
    Cache, Copy, ListPart, Listed, ScanPart, SpanCommandError, SpanName, WalkAt, init_span,
};
pub use tier::{SpanTier, Tier};

#[cfg(test)]
mod tests;
