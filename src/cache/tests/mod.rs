//! Tests of the cache as a whole.

mod simulation;
