//! Floor 2: which rule a request takes, and what it becomes.

mod filter;
mod host_pattern;
mod literals;
mod path_index;
mod patterns;
mod policy;
mod range_map;
mod reserved;
mod rewrite;
mod rule;
mod rules;
mod table;
mod target;
#[cfg(test)]
mod tests;

pub use filter::{Client, passes};
pub use policy::{ForwardPolicy, IpAllow, Refusal};
pub use reserved::Reserved;
pub use rule::CompiledRule;
pub use table::{Found, Table};
pub use target::{HostRegex, PathPrefix, RemapOptions, TargetUrl};
