//! Objects as the cache's users see them: what a read gives and a store takes.

mod answer;
mod gather;
mod hit;
mod parts;
mod reader;
mod room;
mod stored;
mod writer;

pub use answer::{BodyError, Miss, NewObject, NotStored, ObjectKind, PurgeError};
pub use hit::{CopyRef, Hit};
pub use parts::Parts;
pub use reader::BodyReader;
pub use room::Room;
pub(super) use stored::{Fragments, Home, Stored};
pub use writer::ObjectWriter;
