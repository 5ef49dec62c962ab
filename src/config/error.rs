//! What a parser says about a line it can't take.

use std::fmt::{self, Write};
use std::sync::Arc;

/// One fault in a configuration file, with its place and its cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file as the operator names it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column of the first byte of `token`, in characters, from 1.
    pub column: u32,
    /// The text that is wrong; empty when something is missing.
    pub token: String,
    /// What is wrong, and why, as a clause: `port 70000 is above 65535`.
    pub what: String,
    /// What to do, or the nearest valid name.
    pub help: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file, line, column, ..
        } = self;
        write!(f, "{file}:{line}:{column}: {}", Printable(&self.what))?;
        if !self.token.is_empty() {
            write!(f, " (at \"{}\")", Printable(&self.token))?;
        }
        match &self.help {
            Some(help) => write!(f, "; {}", Printable(help)),
            None => Ok(()),
        }
    }
}

/// Text of a file for a terminal, which obeys control characters.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c.is_control() {
            true => write!(f, "{}", c.escape_default()),
            false => f.write_char(c),
        })
    }
}

impl std::error::Error for ConfigError {}

/// What a parser found besides the value: all of it, not just the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Faults for which the file is refused whole.
    pub errors: Vec<ConfigError>,
    /// What the operator should know; the file is used all the same.
    pub warnings: Vec<ConfigError>,
}

impl Findings {
    /// Whether the file can be used.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.errors.is_empty()
    }

    /// Puts errors and warnings each in the order in which they stand in the
    /// files: by line and column; the files in the order of their first ones.
    pub fn sort(&mut self) {
        sort(&mut self.errors);
        sort(&mut self.warnings);
    }

    /// Takes over what another parser found.
    pub fn extend(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.warnings.extend(other.warnings);
    }
}

fn sort(found: &mut [ConfigError]) {
    let mut files: Vec<Arc<str>> = Vec::new();
    for error in &*found {
        if !files.contains(&error.file) {
            files.push(Arc::clone(&error.file));
        }
    }
    let rank = |error: &ConfigError| files.iter().position(|file| *file == error.file);
    found.sort_by_key(|error| (rank(error), error.line, error.column));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: &str, line: u32, column: u32) -> ConfigError {
        ConfigError {
            file: file.into(),
            line,
            column,
            token: String::new(),
            what: "wrong".into(),
            help: None,
        }
    }

    #[test]
    fn a_message_has_no_control_characters_of_the_file() {
        let error = ConfigError {
            token: "\u{1b}[31mmapp\r".into(),
            what: "unknown \u{9b}".into(),
            help: Some("map\u{7}?".into()),
            ..at("a", 1, 2)
        };
        let shown = r#"a:1:2: unknown \u{9b} (at "\u{1b}[31mmapp\r"); map\u{7}?"#;
        assert_eq!(error.to_string(), shown);
    }

    #[test]
    fn findings_come_in_the_order_of_their_files_lines_and_columns() {
        let places = [("b", 6, 1), ("b", 2, 5), ("a", 1, 1), ("b", 2, 3)];
        let errors: Vec<_> = places
            .map(|(file, line, column)| at(file, line, column))
            .into();
        let mut found = Findings {
            warnings: errors.clone(),
            errors,
        };
        found.sort();
        let sorted = [("b", 2, 3), ("b", 2, 5), ("b", 6, 1), ("a", 1, 1)];
        let sorted = sorted.map(|(file, line, column)| at(file, line, column));
        assert_eq!(found.errors, sorted);
        assert_eq!(found.warnings, sorted);
    }

    #[test]
    fn an_error_shows_its_place_cause_and_cure_on_one_line() {
        let error = ConfigError {
            file: "remap.config".into(),
            line: 12,
            column: 5,
            token: "mpa".into(),
            what: "unknown rule type".into(),
            help: Some("did you mean map?".into()),
        };
        assert_eq!(
            error.to_string(),
            "remap.config:12:5: unknown rule type (at \"mpa\"); did you mean map?"
        );
    }
}
