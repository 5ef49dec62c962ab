//! What a record holds, and how an operator writes it.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::syntax::Syntax;
use crate::config::place::shortened;

/// The type of a record, as the third word of its line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordType {
    /// `INT`: a signed number, with K, M, G or T as powers of 1024.
    Int,
    /// `FLOAT`.
    Float,
    /// `STRING`: the rest of the line.
    String,
}

impl RecordType {
    /// The word of records.config.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Int => "INT",
            Self::Float => "FLOAT",
            Self::String => "STRING",
        }
    }
}

/// A record's value. It shows itself in the shortest form that reads back; an
/// unset string is `NULL`.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordValue {
    /// Of an `INT`.
    Int(i64),
    /// Of a `FLOAT`.
    Float(f64),
    /// Of a `STRING`; `None` is unset.
    String(Option<Arc<str>>),
}

impl RecordValue {
    /// The type of the value.
    #[must_use]
    pub fn kind(&self) -> RecordType {
        match self {
            Self::Int(_) => RecordType::Int,
            Self::Float(_) => RecordType::Float,
            Self::String(_) => RecordType::String,
        }
    }

    /// As `traffic_line -r` prints it: an integer in decimal, a float as `%f`
    /// with six places, a text as it is.
    #[must_use]
    pub fn printed(&self) -> String {
        match self {
            Self::Float(value) => format!("{value:.6}"),
            Self::Int(_) | Self::String(_) => self.to_string(),
        }
    }
}

impl fmt::Display for RecordValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::String(Some(value)) => f.write_str(value),
            Self::String(None) => f.write_str("NULL"),
        }
    }
}

/// Which values a record takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// Any of its type.
    Any,
    /// An integer of these bounds, both included.
    Int(i64, i64),
    /// A number of these bounds, both included.
    Float(f64, f64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A text of this form.
    Syntax(Syntax),
}

/// Any value.
pub(super) const ANY: Check = Check::Any;
/// 0 or 1.
pub(super) const FLAG: Check = Check::Int(0, 1);
/// Up to a year.
pub(super) const SECONDS: Check = Check::Int(0, 31_536_000);

/// A text of a form.
pub(super) const fn form(syntax: Syntax) -> Check {
    Check::Syntax(syntax)
}

/// An integer within both bounds.
pub(super) const fn between(low: i64, high: i64) -> Check {
    Check::Int(low, high)
}

/// An integer without an upper bound.
pub(super) const fn at_least(low: i64) -> Check {
    Check::Int(low, i64::MAX)
}

/// A number within both bounds.
pub(super) const fn ratio(low: f64, high: f64) -> Check {
    Check::Float(low, high)
}

/// One of the words.
pub(super) const fn one_of(words: &'static [&'static str]) -> Check {
    Check::OneOf(words)
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Int(low, i64::MAX) => write!(f, "{low} or more"),
            Self::Int(low, high) => write!(f, "{low} to {high}"),
            Self::Float(low, high) => write!(f, "{low} to {high}"),
            Self::OneOf(words) => f.write_str(&words.join(", ")),
            Self::Syntax(syntax) => syntax.fmt(f),
        }
    }
}

impl Check {
    /// Judges a value of the right type.
    ///
    /// # Errors
    /// [`ValueError::Outside`] with the range.
    pub fn judge(self, value: &RecordValue) -> Result<(), ValueError> {
        let fits = match (self, value) {
            (Self::Int(low, high), RecordValue::Int(value)) => (low..=high).contains(value),
            (Self::Float(low, high), RecordValue::Float(value)) => (low..=high).contains(value),
            (Self::OneOf(words), RecordValue::String(Some(word))) => words.contains(&&**word),
            (Self::Syntax(syntax), RecordValue::String(Some(text))) => syntax.fits(text),
            _ => true,
        };
        if fits {
            return Ok(());
        }
        Err(ValueError::Outside {
            value: shortened(&value.to_string()),
            check: self,
        })
    }
}

/// Why a text is no value for a record.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ValueError {
    /// The value is of another type than the record.
    #[error("{value} is no {kind}")]
    WrongType {
        /// The value, as written.
        value: String,
        /// The record's type.
        kind: &'static str,
    },
    /// The record does not take this value.
    #[error("{value} is outside its range: {check}")]
    Outside {
        /// The value, as written.
        value: String,
        /// What the record takes.
        check: Check,
    },
    /// A number was needed.
    #[error("\"{0}\" is not a number")]
    NotANumber(String),
    /// Beyond 64 bits, or no finite number.
    #[error("{0} is too big a number")]
    TooBig(String),
    /// Something follows the number.
    #[error("\"{rest}\" follows the number {number}")]
    Trailing {
        /// The number, as written.
        number: String,
        /// What follows it.
        rest: String,
    },
    /// A line of records.config can't hold such a string.
    #[error("a string can't be empty, hold control characters, or begin or end with a blank")]
    Unwritable,
}
