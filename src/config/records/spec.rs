//! The description of one record.

use super::table::Records;
use super::value::{Check, RecordType, RecordValue, ValueError};

/// When a changed value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// At once, by a reload or a set.
    Reload,
    /// When the server starts again.
    Restart,
}

/// Where a record can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// For the whole proxy only.
    Global,
    /// ATS lets a rule of remap.config override it (`conf_remap.so`).
    Rule,
}

/// Whether a record has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Honour {
    /// It has.
    Honoured,
    /// It is known, and its default tells what Strata does; another value
    /// changes nothing and is warned about by name.
    Ignored,
}

/// One row of the table of records.
#[derive(Debug)]
pub struct RecordSpec {
    /// The whole name, `proxy.config.…`.
    pub name: &'static str,
    /// What it means, a line each.
    pub doc: &'static [&'static str],
    /// Its type.
    pub kind: RecordType,
    /// The values it takes.
    pub check: Check,
    /// When a change takes effect.
    pub update: Update,
    /// Where it can be set.
    pub scope: Scope,
    /// Whether it has an effect.
    pub honour: Honour,
    /// Whether `NULL` unsets it; for other strings `NULL` is the default.
    pub nullable: bool,
    pub(super) load: fn(&Records) -> RecordValue,
    pub(super) store: fn(&mut Records, &RecordValue) -> bool,
}

impl RecordSpec {
    /// The record's value in `records`.
    #[must_use]
    pub fn value_in(&self, records: &Records) -> RecordValue {
        (self.load)(records)
    }

    /// The value it has where nothing sets it.
    #[must_use]
    pub fn default_value(&self) -> RecordValue {
        self.value_in(&Records::default())
    }

    /// Puts a value into `records`, if its type and range allow it.
    ///
    /// # Errors
    /// [`ValueError::Outside`], [`ValueError::WrongType`].
    pub fn store_in(&self, records: &mut Records, value: &RecordValue) -> Result<(), ValueError> {
        self.check.judge(value)?;
        if (self.store)(records, value) {
            return Ok(());
        }
        Err(ValueError::WrongType {
            value: value.to_string(),
            kind: self.kind.word(),
        })
    }
}
