//! What cache.config says.

use crate::base::scheme::Scheme;
use crate::config::ip_range::IpRange;
use crate::config::place::Place;

/// The rules, in the order of their lines: of two that say the same kind of
/// thing of a request, the later counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheRulesFile {
    /// Rules whose every word has an effect.
    pub rules: Vec<CacheRule>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheRule {
    /// Which requests it is for.
    pub destination: Destination,
    /// Which of these.
    pub narrowed: Narrowed,
    /// What becomes of their responses.
    pub action: CacheAction,
    /// Where the line begins.
    pub place: Place,
}

/// The primary specifier of a line. Names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A domain with all hosts below it; empty is every host.
    Domain(String),
    /// One host.
    Host(String),
    /// A pattern that is looked for in the host.
    HostRegex(String),
    /// A pattern that is looked for in the URL.
    UrlRegex(String),
}

/// The secondary specifiers of a line; all that are there must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// The port of the URL.
    pub port: Option<u16>,
    /// Its scheme.
    pub scheme: Option<Scheme>,
    /// What its path begins with, the first `/` left out.
    pub prefix: Option<String>,
    /// What its path ends with.
    pub suffix: Option<String>,
    /// The request's method.
    pub method: Option<String>,
    /// The client's address.
    pub src_ip: Option<IpRange>,
}

/// What a line changes. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheAction {
    /// Nothing is looked up nor stored.
    NeverCache,
    /// No-cache of clients and of the origin does not count.
    IgnoreNoCache,
    /// No-cache of clients does not count.
    IgnoreClientNoCache,
    /// No-cache and no-store of the origin do not count.
    IgnoreServerNoCache,
    /// What is stored is kept so long, however far the cursor goes.
    PinInCache(u64),
    /// What is older than this is revalidated, whatever its lifetime.
    Revalidate(u64),
    /// The lifetime from its receipt on, whatever the origin says.
    TtlInCache(u64),
    /// As `proxy.config.http.cache.cache_responses_to_cookies`.
    ResponsesToCookies(i64),
}
