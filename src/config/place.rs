//! Where in a configuration file a text stands.

use super::ConfigError;
use std::fmt;
use std::sync::Arc;

/// A position in a file, as an error message names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file as the operator names it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Place {
    /// A fault found here: `token` is the wrong text (empty when something is
    /// missing; cut after 80 characters), `what` says what is wrong and why.
    #[must_use]
    pub fn error(&self, token: &str, what: impl Into<String>) -> ConfigError {
        ConfigError {
            file: Arc::clone(&self.file),
            line: self.line,
            column: self.column,
            token: shortened(token),
            what: what.into(),
            help: None,
        }
    }

    /// The place `characters` further right on the same line.
    #[must_use]
    pub fn right(&self, characters: usize) -> Self {
        let step = u32::try_from(characters).unwrap_or(u32::MAX);
        Self {
            column: self.column.saturating_add(step),
            ..self.clone()
        }
    }
}

/// A line may be a megabyte long; an error message may not.
pub(in crate::config) fn shortened(token: &str) -> String {
    const LONGEST: usize = 80;
    match token.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", token.get(..end).unwrap_or_default()),
        None => token.to_owned(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_to_the_right_keeps_its_line() {
        let place = Place {
            file: "remap.config".into(),
            line: 3,
            column: 5,
        };
        assert_eq!(place.right(7).to_string(), "remap.config:3:12");
        assert_eq!(place.right(usize::MAX).column, u32::MAX);
    }

    #[test]
    fn an_error_shows_no_more_than_the_head_of_a_long_token() {
        let place = Place {
            file: "f".into(),
            line: 1,
            column: 1,
        };
        let error = place.error(&"é".repeat(1 << 20), "too long");
        assert_eq!(error.token.chars().count(), 81);
        assert_eq!(place.error("short", "wrong").token, "short");
    }
}
