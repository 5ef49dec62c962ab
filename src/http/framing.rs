//! How a message's body ends (RFC 9112 6).

/// How the body of a message is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body follows the head.
    None,
    /// This many bytes follow.
    Length(u64),
    /// The chunked transfer coding, which ends itself.
    Chunked,
    /// Everything until the connection closes: responses only, and only then
    /// does an orderly close mean that the body is whole.
    UntilClose,
}
