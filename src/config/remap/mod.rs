//! `remap.config`: rules that map, redirect and filter requests.

mod filters;
mod lexer;
mod options;
mod parser;
mod pattern;
#[cfg(test)]
mod tests;
mod url;
mod value;

pub use parser::{Include, parse};
pub use pattern::parse_pattern;
pub use url::is_host;
pub use value::{
    Action, Filter, FromUrl, HostMatch, HostPart, Plugin, PluginUse, RemapFile, Rule, RuleKind,
    Source, ToUrl,
};
