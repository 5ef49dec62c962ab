//! The client side's HTTP/2, by the `h2` library (RFC 9113).
//!
//! The library reads and writes frames; each stream is a task of its own on the
//! connection's event thread and goes through the same transaction as a request
//! of HTTP/1. What is ours is what the library leaves to its user: the strictness
//! that an HTTP/1 origin behind us needs (`head`), the pace (`body`, `reply`),
//! and the counts by which abuse is told (`watch`).

mod body;
mod conn;
mod frames;
mod guarded;
mod head;
mod options;
mod reply;
mod room;
mod stream;
mod watch;

pub(super) use conn::{Arrived, serve};
pub use options::H2Options;
pub use room::UploadRoom;
pub use watch::FrameLimits;

/// What a client says first (RFC 9113 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
