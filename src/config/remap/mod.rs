//! `remap.config`: rules that map, redirect and filter requests.

mod value;

pub use value::{
    Action, Filter, FromUrl, HostMatch, HostPart, Plugin, PluginUse, RemapFile, Rule, RuleKind,
    Scheme, Source, ToUrl,
};
