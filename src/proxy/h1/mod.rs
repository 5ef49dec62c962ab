//! The client side's HTTP/1 codec.
//!
//! Our own rather than hyper's: it keeps an HTTP/1.0 `Proxy-Connection` alive,
//! forwards 1xx, refuses what must be refused, and sends a stored response as
//! one vectored write of bytes it never copies.

mod body;
mod conn;
mod head;
mod options;
mod read;
#[cfg(test)]
pub(in crate::proxy) mod recorder;
mod reply;
mod write;

pub use body::RequestBody;
pub use conn::{ClientConn, Exchange};
pub use options::ConnOptions;
pub use reply::Reply;
