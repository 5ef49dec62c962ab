//! Floor 2: which rule a request takes, and what it becomes.

mod target;

pub use target::{HostRegex, PathPrefix, RemapOptions, TargetUrl};
