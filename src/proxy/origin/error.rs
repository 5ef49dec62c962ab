//! What can go wrong with an origin, and what it makes of the transaction.

use super::request::BrokenBody;
use crate::proxy::answer::Answer;
use crate::proxy::outcome::Outcome;
use crate::proxy::resolve::ResolveError;
use crate::proxy::tls::TlsFault;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Why an origin gave no response, or no whole one.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// The name has no address.
    #[error("origin name: {0}")]
    Dns(#[from] ResolveError),
    /// The policy refuses the address the name leads to.
    #[error("origin address {ip} refused: {reason}")]
    Refused {
        /// The address.
        ip: IpAddr,
        /// The policy's reason.
        reason: String,
    },
    /// The scheme is not spoken to origins.
    #[error("scheme {0} is not spoken to origins")]
    Scheme(String),
    /// The target that a rule makes is longer than can be sent.
    #[error("request-target for the origin: {0}")]
    Target(String),
    /// The last address tried took no connection.
    #[error("connecting to {addr}: {source}")]
    Connect {
        /// The address tried last.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The last address tried did not answer in time.
    #[error("connecting to {addr}: nothing for {after:?}")]
    ConnectTimeout {
        /// The address tried last.
        addr: SocketAddr,
        /// How long it was given.
        after: Duration,
    },
    /// There is no connection over TLS: the server could not prove itself, or
    /// the two did not agree.
    #[error("TLS with {host}: {fault}")]
    Tls {
        /// The server's name or address.
        host: Arc<str>,
        /// Why.
        fault: TlsFault,
    },
    /// As many connections as one server may have are open.
    #[error("{0} connections to this origin are open, its limit")]
    Busy(usize),
    /// Nothing came for this long.
    #[error("origin sent nothing for {0:?}")]
    Stalled(Duration),
    /// The whole exchange took longer than it may.
    #[error("origin was not done after {0:?}")]
    Overdue(Duration),
    /// The connection ended before the head or inside the body.
    #[error("origin closed early: {0}")]
    Closed(String),
    /// The response breaks RFC 9112, or is not what it says.
    #[error("origin response malformed: {0}")]
    Malformed(String),
    /// The client's request body broke off; the origin is not to blame.
    #[error("request body broke off: {0}")]
    RequestBody(String),
    /// The client sent nothing more of its request's body for this long.
    #[error("request body stalled for {0:?}")]
    RequestStalled(Duration),
}

impl OriginError {
    /// What hyper said, in our words.
    pub(super) fn from_hyper(error: &hyper::Error) -> Self {
        let text = described(error);
        if error.is_parse() || error.is_parse_status() || is_broken_coding(error) {
            Self::Malformed(text)
        } else if error.is_user() {
            stalled(error).map_or(Self::RequestBody(text), Self::RequestStalled)
        } else {
            Self::Closed(text)
        }
    }

    /// What h2 said, in our words.
    pub(super) fn from_h2(error: &h2::Error) -> Self {
        let text = error.to_string();
        match error.is_library() {
            // What the origin sent was found to be against RFC 9113.
            true => Self::Malformed(text),
            false => Self::Closed(text),
        }
    }

    /// Why the request's body broke off.
    pub(super) fn of_body(reason: BrokenBody) -> Self {
        match reason {
            BrokenBody::Broken(why) => Self::RequestBody(why),
            BrokenBody::Stalled(after) => Self::RequestStalled(after),
        }
    }

    /// The outcome of a transaction that this ends.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Dns(_) => Outcome::OriginDns,
            Self::Refused { .. } => Outcome::DeniedForward,
            Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Tls { .. }
            | Self::Busy(_) => Outcome::OriginConnect,
            Self::Scheme(_) => Outcome::AnsweredUnsupported,
            Self::Target(_) => Outcome::AnsweredInvalid,
            Self::Stalled(_) | Self::Overdue(_) => Outcome::OriginTimeout,
            Self::Closed(_) => Outcome::OriginClosed,
            Self::Malformed(_) => Outcome::OriginMalformed,
            Self::RequestBody(_) | Self::RequestStalled(_) => Outcome::ClientReadError,
        }
    }

    /// What a client is answered, while nothing has been sent yet.
    #[must_use]
    pub const fn answer(&self) -> Answer {
        match self {
            Self::Refused { .. } => Answer::ForwardDenied,
            Self::Scheme(_) => Answer::NotImplemented,
            Self::Target(_) => Answer::TargetTooLong,
            Self::Busy(_) => Answer::Unavailable,
            Self::ConnectTimeout { .. } | Self::Stalled(_) | Self::Overdue(_) => {
                Answer::OriginTimeout
            }
            Self::RequestBody(_) => Answer::BodyBroken,
            Self::RequestStalled(_) => Answer::RequestTimeout,
            Self::Dns(_) => Answer::OriginDns,
            Self::Connect { .. } | Self::Tls { .. } => Answer::OriginConnect,
            Self::Closed(_) => Answer::OriginClosed,
            Self::Malformed(_) => Answer::OriginMalformed,
        }
    }

    /// Whether the origin failed, so that a stale response may stand in
    /// (RFC 9111 4.2.4): not when we refused, nor when the client broke off.
    #[must_use]
    pub const fn is_origin_failure(&self) -> bool {
        !matches!(
            self,
            Self::Refused { .. }
                | Self::Scheme(_)
                | Self::Target(_)
                | Self::RequestBody(_)
                | Self::RequestStalled(_)
        )
    }
}

/// For how long the client stalled, if that is what ended its request's body.
fn stalled(error: &hyper::Error) -> Option<Duration> {
    let source = std::error::Error::source(error)?;
    match source.downcast_ref()? {
        BrokenBody::Stalled(after) => Some(*after),
        BrokenBody::Broken(_) => None,
    }
}

/// hyper reports a broken chunk as an I/O error of invalid data.
fn is_broken_coding(error: &hyper::Error) -> bool {
    use std::error::Error;
    use std::io::ErrorKind::{InvalidData, InvalidInput};
    let source = error.source();
    let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| matches!(io.kind(), InvalidData | InvalidInput))
}

/// An error with its causes.
fn described(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
