//! Where a rule sends a request, and the switches of the rule language.

use crate::base::scheme::Scheme;
use crate::config::records::Records;
use std::sync::Arc;

/// Where we differ from ATS on purpose; each has a record to get ATS's way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemapOptions {
    /// `proxy.config.strata.remap.host_regex`.
    pub host_regex: HostRegex,
    /// `proxy.config.strata.remap.path_prefix`.
    pub path_prefix: PathPrefix,
}

impl RemapOptions {
    /// The options that `records` say.
    #[must_use]
    pub fn from_records(records: &Records) -> Self {
        let host_regex = match &*records.strata_remap_host_regex {
            "search" => HostRegex::Search,
            _ => HostRegex::Anchored,
        };
        let path_prefix = match &*records.strata_remap_path_prefix {
            "byte" => PathPrefix::Byte,
            _ => PathPrefix::Segment,
        };
        Self {
            host_regex,
            path_prefix,
        }
    }
}

/// How much of a host a `regex_` rule's pattern must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostRegex {
    /// All of it: `cdn.a.cn` takes no request for `cdn.a.cn.evil.com`.
    #[default]
    Anchored,
    /// Any part of it, as in ATS.
    Search,
}

/// Where the path of FROM may end within a request's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathPrefix {
    /// At the end of a segment: `/b` takes `/b` and `/b/c` but not `/bzz`.
    #[default]
    Segment,
    /// Anywhere, as in ATS.
    Byte,
}

/// The URL that a mapped request is sent to.
///
/// Its host is the one for `pristine_host_hdr` 0; for 1 the caller has the
/// host of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUrl {
    /// How to talk to the origin.
    pub scheme: Scheme,
    /// In lower case; an IPv6 address in brackets.
    pub host: Arc<str>,
    /// Always known: written, kept from the request, or the scheme's.
    pub port: u16,
    /// Begins with `/`; the query follows a `?` as received.
    pub path_and_query: String,
}

impl TargetUrl {
    /// The whole URL as text; the port shows unless it is the scheme's own.
    #[must_use]
    pub fn to_url(&self) -> String {
        let Self {
            host,
            port,
            path_and_query,
            ..
        } = self;
        let scheme = self.scheme.as_str();
        if *port == self.scheme.default_port() {
            return format!("{scheme}://{host}{path_and_query}");
        }
        format!("{scheme}://{host}:{port}{path_and_query}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_shows_unless_it_is_the_schemes_own() {
        let mut target = TargetUrl {
            scheme: Scheme::Http,
            host: "a.cn".into(),
            port: 80,
            path_and_query: "/x?q".into(),
        };
        assert_eq!(target.to_url(), "http://a.cn/x?q");
        target.port = 443;
        assert_eq!(target.to_url(), "http://a.cn:443/x?q");
    }
}
