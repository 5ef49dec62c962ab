//! Why a word of a line is not taken, and what files have in common.

use super::ConfigError;
use super::lines::{Line, Word};

/// Why a word is not taken.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) what: String,
    pub(super) help: Option<String>,
}

impl Fault {
    pub(super) fn new(what: impl Into<String>, help: &str) -> Self {
        Self {
            what: what.into(),
            help: Some(help.into()),
        }
    }

    /// The fault as an error at that word of the line.
    pub(super) fn of(self, line: &Line<'_>, word: &Word<'_>) -> ConfigError {
        let mut error = line.place(word.column).error(word.text, self.what);
        error.help = self.help;
        error
    }
}

/// Sets what must not be set yet.
pub(super) fn once<T>(what: &str, slot: &mut Option<T>, value: T) -> Result<(), Fault> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Fault::new(format!("{what} is given twice"), "give it once")),
    }
}

/// The number of a volume.
pub(super) fn volume_number(text: &str) -> Result<u8, Fault> {
    match text.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => Err(Fault::new("no number of a volume", "volumes are 1 to 255")),
    }
}
