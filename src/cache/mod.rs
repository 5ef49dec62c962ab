//! Floor 2: tiers, the RAM cache, stripes and their directory.
//!
//! The cache never sees a request or a setting's name: it takes options,
//! keys and bytes.

pub mod key;

pub use key::CacheKey;
