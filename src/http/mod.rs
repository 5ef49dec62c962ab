//! Floor 1: the RFCs' decisions as pure functions.
//!
//! Nothing here does I/O or reads a clock: messages and `now` come in,
//! decisions with their reasons go out.

pub mod cache_control;
pub mod chunked;
pub mod conditional;
pub mod date;
pub mod early;
pub mod forwarded;
pub mod forwarding;
pub mod framing;
pub mod freshness;
pub mod head;
pub mod invalidate;
pub mod multipart;
pub mod negotiation;
pub mod partial;
pub mod policy;
pub mod range;
pub mod reuse;
pub mod storable;
pub mod stored;
pub mod target;
pub mod targeted;
#[cfg(test)]
mod testing;
pub mod upgrade;
pub mod vary;
pub mod wire;
