//! Floor 0: what every module may use, and that uses none of them.

pub mod aligned;
pub mod clock;
pub mod complaints;
pub mod huge;
pub mod memory;
pub(crate) mod planted;
pub mod prng;
pub mod scheme;
pub(crate) mod simulated;
pub mod size;
