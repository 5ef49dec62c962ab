//! What a remap.config says, checked but not yet compiled.

use crate::base::scheme::Scheme;
use crate::config::ip_range::IpRange;
use crate::config::place::Place;
use crate::config::records::Override;
use std::sync::Arc;

/// All rules of a remap.config and the files that it includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemapFile {
    /// In the order in which they hold: a file's lines stand where its
    /// `.include` stands.
    pub rules: Vec<Rule>,
    /// The names of the included files, in order, for whoever watches them.
    pub included: Vec<Arc<str>>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What the rule does.
    pub kind: RuleKind,
    /// Which URLs it takes.
    pub from: FromUrl,
    /// What they become.
    pub to: ToUrl,
    /// The word after TO, if there is one.
    pub tag: Option<String>,
    /// All must allow a request: active named filters, then the rule's own.
    pub filters: Vec<Arc<Filter>>,
    /// Whether ip_allow holds too: false after `.deactivatefilter ip_allow`.
    pub ip_allow: bool,
    /// In written order.
    pub plugins: Vec<PluginUse>,
    /// The records that hold otherwise for its requests (`conf_remap.so`).
    pub overrides: Vec<Override>,
    /// Where the rule's first word stands.
    pub place: Place,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleKind {
    /// Sends the request to the TO URL.
    Map,
    /// Rewrites URLs in response headers.
    ReverseMap,
    /// Answers 301.
    Redirect,
    /// Answers 307.
    RedirectTemporary,
}

/// Which URLs a rule takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromUrl {
    /// None takes http and https. Those of WebSockets stand in map rules only.
    pub scheme: Option<Scheme>,
    /// Which hosts.
    pub host: HostMatch,
    /// None means the scheme's port, unless every port is taken.
    pub port: Option<u16>,
    /// Whether every port is taken: none is written, and every host is taken
    /// too, by a bare path or by a catch-all pattern such as `(.*)`.
    pub every_port: bool,
    /// The path's beginning, without the leading `/`: empty takes every path.
    pub path: String,
}

/// Which hosts a rule takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostMatch {
    /// FROM is a bare path: any host.
    Any,
    /// This host, in lower case; an IPv6 address in brackets and canonical.
    Exact(String),
    /// Hosts that this regular expression matches (`regex_` rules).
    Pattern(String),
}

/// What a URL becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToUrl {
    /// http or https.
    pub scheme: Scheme,
    /// The host, joined from these parts; at least one.
    pub host: Vec<HostPart>,
    /// None means the scheme's port, but see [`ToUrl::is_literal`].
    pub port: Option<u16>,
    /// The path's beginning, without the leading `/`. `$1` in it is literal.
    pub path: String,
}

impl ToUrl {
    /// Whether the operator wrote the whole host: no capture in it. When one
    /// is, the client chooses the host, and without a port in the rule the
    /// port of its request holds.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.host
            .iter()
            .all(|part| matches!(part, HostPart::Text(_)))
    }
}

/// A part of a target host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPart {
    /// These letters, in lower case.
    Text(Arc<str>),
    /// What the capture group of this number matched; 0 is the whole match.
    Capture(u8),
}

/// What a filter does with a request that it matches; with one that it does
/// not match it does the opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Lets the request pass.
    Allow,
    /// Refuses it.
    Deny,
}

/// A named filter, or the `@action @method @src_ip` of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The name given by `.definefilter`; none for a rule's own.
    pub name: Option<String>,
    /// What happens on a match.
    pub action: Action,
    /// Empty matches every method. Names of RFC 9110 are in upper case.
    pub methods: Vec<String>,
    /// Empty matches every client; else one must.
    pub sources: Vec<Source>,
    /// Where it is defined.
    pub place: Place,
}

/// Clients by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The addresses.
    pub range: IpRange,
    /// `@src_ip=~`: the clients outside the range.
    pub inverted: bool,
}

/// Plugins that this program has built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plugin {
    /// `generator.so`: an origin that makes bodies by path.
    Generator,
    /// `conf_remap.so`: records with other values for a rule's requests.
    ConfRemap,
}

impl Plugin {
    /// Every plugin.
    pub const ALL: &[Self] = &[Self::Generator, Self::ConfRemap];

    /// The name that `@plugin=` has.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generator => "generator.so",
            Self::ConfRemap => "conf_remap.so",
        }
    }
}

/// One `@plugin=` of a rule with the `@pparam=`s after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginUse {
    /// Which plugin.
    pub plugin: Plugin,
    /// Its parameters in written order.
    pub params: Vec<String>,
    /// Where `@plugin=` stands.
    pub place: Place,
}
