//! One request's head, whatever version it came in.

use super::error::RequestError;
use crate::http::framing::BodyFraming;
use crate::http::target::{RequestUrl, Target};
use crate::http::upgrade::{Offer, UpgradeInput};
use http::header::{EXPECT, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, Method, Version};

/// A request whose head has passed every check.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// Any token; unknown methods pass through the proxy.
    pub method: Method,
    /// The version that the client speaks.
    pub version: Version,
    /// What is asked for, by the form it was asked in.
    pub target: Target,
    /// Every field as received, hop-by-hop ones too.
    pub headers: HeaderMap,
    /// How the body ends.
    pub framing: BodyFraming,
    /// Bytes of the head, as HTTP/1 writes it, its last CRLF included.
    pub bytes: u64,
}

impl RequestHead {
    /// The effective URL; none for CONNECT.
    #[must_use]
    pub fn url(&self) -> Option<&RequestUrl> {
        self.target.url()
    }

    /// Whether a body follows, be it an empty one.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.framing != BodyFraming::None
    }

    /// Whether the client has a copy, and asks for another response only if
    /// that one is not current.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        let conditions = [IF_NONE_MATCH, IF_MODIFIED_SINCE];
        conditions
            .iter()
            .any(|name| self.headers.contains_key(name))
    }

    /// What of `allowed` the connection may switch to ([`Offer::of`]).
    #[must_use]
    pub fn upgrade(&self, allowed: &str) -> Option<Offer> {
        let input = UpgradeInput {
            method: &self.method,
            version: self.version,
            framing: self.framing,
            headers: &self.headers,
        };
        Offer::of(&input, allowed)
    }

    /// Whether the client waits for a 100 before it sends its body. An
    /// HTTP/1.0 client can't, whatever it says (RFC 9110 10.1.1).
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.version >= Version::HTTP_11 && self.has_body() && self.headers.contains_key(EXPECT)
    }
}

/// The only expectation there is, is 100-continue (RFC 9110 10.1.1).
pub(in crate::proxy) fn refuse_expectation(
    version: Version,
    headers: &HeaderMap,
) -> Result<(), RequestError> {
    let mut lines = headers.get_all(EXPECT).iter();
    let known = lines.all(|line| line.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if known || version == Version::HTTP_10 {
        return Ok(());
    }
    Err(RequestError::Expectation)
}

/// Whether a comma-separated list holds a token, in any of the field's lines.
pub(in crate::proxy) fn names_option(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let lines = headers.get_all(name).iter();
    let mut members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    members.any(|member| member.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}
