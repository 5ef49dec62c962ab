//! The `Cache-Status` value of one transaction (RFC 9211).

use std::fmt::{Display, Formatter, Result};

/// Why a request went to the origin (RFC 9211 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// The cache was set not to handle it.
    Bypass,
    /// The method is not answered from a cache.
    Method,
    /// Nothing under the URL.
    UriMiss,
    /// Something under the URL, but no alternate for these fields.
    VaryMiss,
    /// Nothing fit, for a reason that is not told apart.
    Miss,
    /// The request's own directives.
    Request,
    /// A stale response was held.
    Stale,
    /// A part of what was asked for was held.
    Partial,
}

impl Forwarded {
    const fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// What the field says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Why the request went on; `None` is a hit.
    pub forwarded: Option<Forwarded>,
    /// The status that the origin answered, where it differs from ours.
    pub forwarded_status: Option<u16>,
    /// Seconds of freshness left, negative when stale.
    pub ttl: Option<i64>,
    /// The response is being stored.
    pub stored: bool,
    /// It shares another request's fetch.
    pub collapsed: bool,
    /// The tier, or the reason for a miss: a token.
    pub detail: Option<&'static str>,
}

impl Display for CacheStatus {
    /// The field's value.
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str("strata")?;
        match self.forwarded {
            None => out.write_str("; hit")?,
            Some(why) => write!(out, "; fwd={}", why.token())?,
        }
        if let Some(status) = self.forwarded_status {
            write!(out, "; fwd-status={status}")?;
        }
        if let Some(ttl) = self.ttl {
            write!(out, "; ttl={ttl}")?;
        }
        if self.stored {
            out.write_str("; stored")?;
        }
        if self.collapsed {
            out.write_str("; collapsed")?;
        }
        self.detail
            .map_or(Ok(()), |detail| write!(out, "; detail={detail}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_tells_its_ttl_and_its_tier() {
        let status = CacheStatus {
            ttl: Some(30),
            detail: Some("ram"),
            ..CacheStatus::default()
        };
        assert_eq!(status.to_string(), "strata; hit; ttl=30; detail=ram");
    }

    #[test]
    fn a_forwarded_request_tells_why_and_what_became_of_it() {
        let stored = CacheStatus {
            forwarded: Some(Forwarded::UriMiss),
            stored: true,
            ..CacheStatus::default()
        };
        assert_eq!(stored.to_string(), "strata; fwd=uri-miss; stored");
        let shared = CacheStatus {
            forwarded: Some(Forwarded::Stale),
            forwarded_status: Some(304),
            collapsed: true,
            ..CacheStatus::default()
        };
        assert_eq!(
            shared.to_string(),
            "strata; fwd=stale; fwd-status=304; collapsed"
        );
    }
}
