//! Tests of the cache as a whole.

pub(in crate::cache) mod simulation;
