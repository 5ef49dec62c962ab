//! What can go wrong with a client, and the status that answers it.

use crate::http::chunked::ChunkError;
use crate::http::framing::FramingError;
use crate::http::head::HeadError;
use crate::http::target::TargetError;
use http::{HeaderName, StatusCode};
use std::time::Duration;

/// Why no request could be had from a client.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The head breaks the grammar, or a limit: 400, 414 or 431.
    #[error("bad request: {0}")]
    Head(#[from] HeadError),
    /// The target or Host names nothing that can be served: 400.
    #[error("bad request: {0}")]
    Target(#[from] TargetError),
    /// The end of the body is in doubt: 400 or 501.
    #[error("bad request: {0}")]
    Framing(#[from] FramingError),
    /// A token that the HTTP library does not take, in its words: 400.
    #[error("bad request: {0}")]
    Token(String),
    /// An expectation other than 100-continue: 417 (RFC 9110 10.1.1).
    #[error("expectation not supported")]
    Expectation,
    /// `:authority` names another server than Host: 400 (RFC 9113 8.3.1).
    #[error("bad request: :authority \"{0}\" and Host \"{1}\" differ")]
    Authority(String, String),
    /// A blank before or behind a field's value, where HTTP/2 has none: its
    /// stream is reset (RFC 9113 8.2.1).
    #[error("bad request: a blank around the value of {0}")]
    Blank(HeaderName),
    /// An extended CONNECT to a protocol that is not passed on: 501 (RFC 8441).
    #[error("bad request: no CONNECT to protocol \"{0}\"")]
    Protocol(String),
    /// The head did not end in time: 408.
    #[error("request head not whole after {0:?}")]
    Slow(Duration),
    /// The client left in the middle of a head.
    #[error("client closed inside a request head")]
    Truncated,
    /// The socket failed.
    #[error("client connection: {0}")]
    Io(#[from] std::io::Error),
}

impl RequestError {
    /// Whether it is about the size of the fields.
    #[must_use]
    pub const fn is_about_size(&self) -> bool {
        matches!(
            self,
            Self::Head(HeadError::TooLong(_) | HeadError::TooManyFields(_))
        )
    }

    /// The status to answer with, or none when there is no answer: nobody is
    /// there to read it, or the stream is reset.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        Some(match self {
            Self::Head(fault) => status_of(fault.status()),
            Self::Framing(fault) => status_of(fault.request_status()),
            Self::Target(_) | Self::Token(_) | Self::Authority(..) => StatusCode::BAD_REQUEST,
            Self::Protocol(_) => StatusCode::NOT_IMPLEMENTED,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Truncated | Self::Io(_) | Self::Blank(_) => return None,
        })
    }
}

fn status_of(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST)
}

/// Why a request's body could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The chunked framing is broken: 400, and the connection is of no use.
    #[error("bad request body: {0}")]
    Chunk(#[from] ChunkError),
    /// The client closed before the end its framing promised.
    #[error("client closed inside the request body")]
    Truncated,
    /// Nothing came for this long: 408.
    #[error("request body stalled for {0:?}")]
    Stalled(Duration),
    /// The socket failed.
    #[error("client connection: {0}")]
    Io(#[from] std::io::Error),
}

/// Why a response could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReplyError {
    /// The client took no byte for this long.
    #[error("client took nothing for {0:?}")]
    Stalled(Duration),
    /// The socket failed; most often, the client left.
    #[error("client connection: {0}")]
    Io(#[from] std::io::Error),
    /// More or less content than the announced length, in bytes: the transfer
    /// is aborted, for a length once sent can't be taken back.
    #[error("body is off its announced length by {0} bytes")]
    Length(u64),
}
