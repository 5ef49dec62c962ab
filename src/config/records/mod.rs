//! records.config: one table of settings, their values, and the file's text.
//!
//! The table's rows are in the `rows_*` files, in the order of their names;
//! [`Records`] has a field for each, [`RECORDS`] its description. docs/RECORDS.md
//! is written from it.

mod aliases;
mod differences;
mod doc;
mod file;
mod known;
mod number;
mod overriding;
mod partly;
mod resolve;
mod rewrite;
mod spec;
mod syntax;
mod value;
// The rows: each hands its own and those before it to the next.
#[macro_use]
mod rows_cache;
#[macro_use]
mod rows_names;
#[macro_use]
mod rows_http_cache;
#[macro_use]
mod rows_http;
#[macro_use]
mod rows_http2;
#[macro_use]
mod rows_service;
mod table;

pub use aliases::{ALIASES, Alias, alias};
pub use doc::markdown;
pub use file::{FileRecord, RecordsFile};
pub use known::{SetError, settings, valueless};
pub(in crate::config) use number::int_prefix;
pub use overriding::{Override, OverrideError};
pub use resolve::{Running, variable};
pub use rewrite::set_in_text;
pub use spec::{Honour, RecordSpec, Scope, Update};
pub use syntax::Syntax;
pub use table::{RECORDS, Records, find};
pub use value::{Check, RecordType, RecordValue, ValueError};
