//! cache.config: what becomes of the responses for some destinations, a rule a
//! line.
//!
//! ```text
//! PRIMARY=VALUE [SECONDARY=VALUE …] ACTION=VALUE
//!
//! primary    dest_domain dest_host dest_ip host_regex url_regex
//! secondary  port scheme prefix suffix method time src_ip internal
//! action     action=never-cache | ignore-no-cache | ignore-client-no-cache
//!                   | ignore-server-no-cache
//!            pin-in-cache=T revalidate=T ttl-in-cache=T
//!            cache-responses-to-cookies=0…4
//! ```
//!
//! T is seconds, or a text such as `1d2h30m15s`. The order of the words on a
//! line is free; a word that begins with `#` begins a comment. Any fault
//! refuses the file.

mod parser;
mod seconds;
mod value;

pub use parser::parse;
pub use value::{CacheAction, CacheRule, CacheRulesFile, Destination, Narrowed};

#[cfg(test)]
mod tests;
