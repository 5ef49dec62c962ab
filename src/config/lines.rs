//! A configuration file's bytes as lines and words that know their place.
//!
//! Takes what editors and other systems leave in such files: a byte order mark
//! at the beginning, CR LF at line ends, tabs, no line end after the last line,
//! lines of any length. Bytes that are no UTF-8 are an error with their place.

use std::sync::Arc;

use super::ConfigError;
use super::place::Place;

/// The text of a file, without a byte order mark.
///
/// # Errors
/// At the first bytes that are no UTF-8.
pub fn decode<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, ConfigError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let (valid, invalid) = bytes.split_at(error.valid_up_to());
        not_utf8(file, valid, invalid)
    })
}

/// The fault at the first of `invalid`, which follows `valid` in the file.
fn not_utf8(file: &str, valid: &[u8], invalid: &[u8]) -> ConfigError {
    let before = String::from_utf8_lossy(valid);
    let last = before.rsplit('\n').next().unwrap_or_default();
    let place = Place {
        file: file.into(),
        line: counted(1 + before.matches('\n').count()),
        column: counted(1 + last.chars().count()),
    };
    let byte = invalid.first().copied().unwrap_or_default();
    let mut error = place.error(&format!("\\x{byte:02X}"), "the file is not UTF-8 here");
    error.help = Some("save it as UTF-8".into());
    error
}

/// A count as a line or column number; the last one when it doesn't fit.
fn counted(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// One line without its end.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The file as the operator names it.
    pub file: Arc<str>,
    /// From 1.
    pub number: u32,
    /// The text, without CR and LF at its end.
    pub text: &'a str,
}

/// The lines of a text, the last one with or without a line end.
pub fn lines<'a>(file: &str, text: &'a str) -> impl Iterator<Item = Line<'a>> + use<'a> {
    let file: Arc<str> = file.into();
    text.lines().enumerate().map(move |(above, text)| Line {
        file: Arc::clone(&file),
        number: counted(above + 1),
        text: text.trim_end_matches('\r'),
    })
}

/// A part of a line and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The part's text.
    pub text: &'a str,
    /// Where it begins, in characters, from 1.
    pub column: u32,
}

impl<'a> Line<'a> {
    /// The place of the column.
    #[must_use]
    pub fn place(&self, column: u32) -> Place {
        Place {
            file: Arc::clone(&self.file),
            line: self.number,
            column,
        }
    }

    /// Reads the line from its beginning.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor {
            rest: self.text,
            column: 1,
        }
    }

    /// The words between blanks.
    pub fn words(&self) -> impl Iterator<Item = Word<'a>> + use<'a> {
        let mut cursor = self.cursor();
        std::iter::from_fn(move || cursor.word())
    }

    /// Whether nothing is on the line, or its first visible character is `#`.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        let text = self.text.trim_start();
        text.is_empty() || text.starts_with('#')
    }
}

/// A place in a line, moving to the right; it counts its characters once.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a str,
    column: u32,
}

impl<'a> Cursor<'a> {
    /// The next word, after the blanks before it.
    pub fn word(&mut self) -> Option<Word<'a>> {
        self.skip_blanks();
        let end = self.rest.find(is_blank).unwrap_or(self.rest.len());
        let word = self.take(end);
        (!word.text.is_empty()).then_some(word)
    }

    /// What is left of the line, without blanks at its ends.
    pub fn rest(&mut self) -> Word<'a> {
        self.skip_blanks();
        let mut rest = self.take(self.rest.len());
        rest.text = rest.text.trim_end_matches(is_blank);
        rest
    }

    fn skip_blanks(&mut self) {
        let blanks = self.rest.len() - self.rest.trim_start_matches(is_blank).len();
        self.take(blanks);
    }

    /// The next `bytes` bytes, which end at a character's end.
    fn take(&mut self, bytes: usize) -> Word<'a> {
        let (text, rest) = self.rest.split_at(bytes);
        let column = self.column;
        self.rest = rest;
        self.column = column.saturating_add(counted(text.chars().count()));
        Word { text, column }
    }
}

/// Blank, tab, and a CR within a line.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(u32, u32, &str)> {
        lines("f", text)
            .flat_map(|line| line.words().map(move |w| (line.number, w.column, w.text)))
            .collect()
    }

    #[test]
    fn words_stand_between_blanks_and_count_characters() {
        assert_eq!(
            words("a\tbc  d\r\n\n é x"),
            [
                (1, 1, "a"),
                (1, 3, "bc"),
                (1, 7, "d"),
                (3, 2, "é"),
                (3, 4, "x")
            ]
        );
    }

    #[test]
    fn a_byte_order_mark_and_a_missing_line_end_change_nothing() {
        let plain = decode("f", b"a b\n").unwrap();
        let marked = decode("f", b"\xEF\xBB\xBFa b").unwrap();
        assert_eq!(words(plain), words(marked));
    }

    #[test]
    fn bytes_that_are_no_utf8_are_named_with_their_place() {
        let error = decode("remap.config", "map é".as_bytes()).map(|_| ());
        assert_eq!(error, Ok(()));
        let error = decode("remap.config", b"ok\nmap \xC3\xA9\xFF x").unwrap_err();
        assert_eq!(
            error.to_string(),
            "remap.config:2:6: the file is not UTF-8 here (at \"\\xFF\"); save it as UTF-8"
        );
    }

    #[test]
    fn the_rest_of_a_line_keeps_its_inner_blanks() {
        let line = lines("f", "CONFIG  a b  c \t").next().unwrap();
        let mut cursor = line.cursor();
        cursor.word();
        let rest = cursor.rest();
        assert_eq!((rest.text, rest.column), ("a b  c", 9));
        assert_eq!(cursor.rest().text, "");
    }

    #[test]
    fn a_line_of_a_megabyte_of_words_is_read_in_one_pass() {
        let text = "é ".repeat(1 << 19);
        let last = words(&text).pop().unwrap();
        assert_eq!(last, (1, (1 << 20) - 1, "é"));
    }
}
