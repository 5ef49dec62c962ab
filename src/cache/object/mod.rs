//! Objects as the cache's users see them: what a read gives and a store takes.

mod answer;

pub use answer::{BodyError, Miss, NewObject, NotStored, ObjectKind, PurgeError};
