//! The description of one record, and how it reads a text.

use super::number::{float_prefix, int_prefix};
use super::partly;
use super::table::Records;
use super::value::{Check, RecordType, RecordValue, ValueError};
use crate::config::place::shortened;

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
    /// A rule of remap.config may override it (`conf_remap.so`).
    Rule,
    /// As [`Self::Rule`] in ATS; here it holds before a rule is known.
    Early,
}

/// Whether a record has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Honour {
    /// It has; a value that has none of its own is warned about by name.
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

    /// Reads a value, within the record's range. Nothing may follow it.
    ///
    /// # Errors
    /// Any [`ValueError`].
    pub fn read(&self, text: &str) -> Result<RecordValue, ValueError> {
        let value = match self.kind {
            RecordType::Int => RecordValue::Int(whole(text, int_prefix(text)?)?),
            RecordType::Float => RecordValue::Float(whole(text, float_prefix(text)?)?),
            RecordType::String => self.read_string(text)?,
        };
        self.check.judge(&value).map(|()| value)
    }

    fn read_string(&self, text: &str) -> Result<RecordValue, ValueError> {
        if text.is_empty() || text.trim() != text || text.contains(char::is_control) {
            return Err(ValueError::Unwritable);
        }
        Ok(match (text, self.nullable) {
            ("NULL", true) => RecordValue::String(None),
            ("NULL", false) => self.default_value(),
            _ => RecordValue::String(Some(text.into())),
        })
    }

    /// What to warn about when the record is set to `value`: that it has no
    /// effect, unless it is what Strata does anyway.
    #[must_use]
    pub fn unheeded(&self, value: &RecordValue) -> Option<String> {
        if self.honour == Honour::Honoured {
            return partly::unheeded(self.name, value);
        }
        let default = self.default_value();
        (*value != default).then(|| {
            let name = self.name;
            format!("{name} is not honoured yet: Strata acts as with its default, {default}")
        })
    }
}

/// The number, if nothing follows it.
fn whole<N>(text: &str, (number, rest): (N, &str)) -> Result<N, ValueError> {
    if rest.is_empty() {
        return Ok(number);
    }
    Err(ValueError::Trailing {
        number: shortened(text.strip_suffix(rest).unwrap_or(text)),
        rest: shortened(rest),
    })
}
