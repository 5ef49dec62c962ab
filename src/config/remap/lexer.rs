//! The text of a remap.config cut into statements of words.

use crate::config::Findings;
use crate::config::place::Place;
use std::sync::Arc;

/// A word and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) place: Place,
}

/// A line, with the lines that continue it; never empty.
pub(super) type Statement<'t> = Vec<Word<'t>>;

/// Cuts a file into statements.
///
/// A line ends with LF or CR LF. A `\` at its end joins the next line to it
/// as if both were one; a `#` that begins a word hides the rest of its line,
/// and as the first thing of a statement the lines joined to it as well.
pub(super) fn statements<'t>(
    file: &Arc<str>,
    text: &'t [u8],
    findings: &mut Findings,
) -> Vec<Statement<'t>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut lexer = Lexer {
        file,
        findings,
        done: Vec::new(),
        open: Vec::new(),
        in_comment: false,
    };
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        lexer.line(number, line.strip_suffix(b"\r").unwrap_or(line));
    }
    lexer.close();
    lexer.done
}

struct Lexer<'l, 't> {
    file: &'l Arc<str>,
    findings: &'l mut Findings,
    done: Vec<Statement<'t>>,
    /// The statement that the next line may continue.
    open: Statement<'t>,
    /// Whether the open statement began with `#`.
    in_comment: bool,
}

impl<'t> Lexer<'_, 't> {
    fn line(&mut self, number: u32, bytes: &'t [u8]) {
        let place = self.place(number);
        let Some(text) = self.decoded(&place, bytes) else {
            return self.close();
        };
        let (text, continued) = match text.trim_end_matches([' ', '\t']).strip_suffix('\\') {
            Some(head) => (head, true),
            None => (text, false),
        };
        self.words(&place, text);
        if !continued {
            self.close();
        }
    }

    fn words(&mut self, line: &Place, text: &'t str) {
        let starts_comment = text.trim_start_matches([' ', '\t']).starts_with('#');
        if self.in_comment && !starts_comment && !text.trim().is_empty() {
            let what = "this line is part of the comment above, which ends in \\";
            self.findings.warnings.push(line.error(text.trim(), what));
        }
        if self.open.is_empty() && starts_comment {
            self.in_comment = true;
        }
        if !self.in_comment {
            let words = words_of(line, text);
            self.open
                .extend(words.take_while(|w| !w.text.starts_with('#')));
        }
    }

    /// The line as text; none, and an error, if it can't be one.
    fn decoded(&mut self, line: &Place, bytes: &'t [u8]) -> Option<&'t str> {
        let fault = match std::str::from_utf8(bytes) {
            Ok(text) => match text.split_once('\r') {
                None => return Some(text),
                Some((head, _)) => line.right(head.chars().count()).error(
                    "",
                    "a carriage return within a line; end lines with LF or CR LF",
                ),
            },
            Err(error) => {
                let head = bytes.get(..error.valid_up_to()).unwrap_or_default();
                line.right(String::from_utf8_lossy(head).chars().count())
                    .error("", "the line is not UTF-8 from here")
            }
        };
        self.findings.errors.push(fault);
        None
    }

    fn close(&mut self) {
        self.in_comment = false;
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open));
        }
    }

    fn place(&self, line: u32) -> Place {
        Place {
            file: Arc::clone(self.file),
            line,
            column: 1,
        }
    }
}

fn words_of<'t>(line: &Place, text: &'t str) -> impl Iterator<Item = Word<'t>> {
    let pieces = text.split([' ', '\t']).scan(0, |column, piece| {
        let at = *column;
        *column += piece.chars().count() + 1;
        Some((at, piece))
    });
    pieces
        .filter(|(_, piece)| !piece.is_empty())
        .map(|(at, text)| Word {
            text,
            place: line.right(at),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word's text, line and column.
    type Shown = (String, u32, u32);

    fn lexed(text: &[u8]) -> (Vec<Vec<Shown>>, Findings) {
        let mut findings = Findings::default();
        let statements = statements(&"f".into(), text, &mut findings);
        let shown = |word: Word<'_>| (word.text.to_owned(), word.place.line, word.place.column);
        let statements = statements
            .into_iter()
            .map(|words| words.into_iter().map(shown).collect());
        (statements.collect(), findings)
    }

    fn texts(text: &[u8]) -> Vec<Vec<String>> {
        let (statements, findings) = lexed(text);
        assert_eq!(findings, Findings::default());
        let of = |words: Vec<Shown>| words.into_iter().map(|w| w.0).collect();
        statements.into_iter().map(of).collect()
    }

    #[test]
    fn words_know_their_line_and_column_in_characters() {
        let (statements, _) = lexed("\n\té a\tb\n".as_bytes());
        let expected = [("é", 2, 2), ("a", 2, 4), ("b", 2, 6)];
        let expected = expected.map(|(w, l, c)| (w.to_owned(), l, c)).to_vec();
        assert_eq!(statements, [expected]);
    }

    #[test]
    fn bom_crlf_blanks_and_a_missing_last_newline_are_no_matter() {
        let expected = vec![vec!["a".to_owned(), "b".into()], vec!["c".into()]];
        for text in [
            "a b\nc\n",
            "\u{feff}a b\r\nc\r\n",
            "\t a\t b \t\n\n  \nc",
            "a b   \nc\t\t",
        ] {
            assert_eq!(texts(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn a_backslash_joins_lines_and_words_keep_their_places() {
        let (statements, _) = lexed(b"a \\\n  b\\\r\nc \\ \nd\ne");
        let expected = [("a", 1, 1), ("b", 2, 3), ("c", 3, 1), ("d", 4, 1)];
        let expected = expected.map(|(w, l, c)| (w.to_owned(), l, c)).to_vec();
        assert_eq!(statements, [expected, vec![("e".to_owned(), 5, 1)]]);
    }

    #[test]
    fn comments_are_whole_lines_or_tails() {
        let expected = vec![vec!["a".to_owned(), "b#c".into()]];
        assert_eq!(texts(b"# x\n  #y z\na b#c # tail\n#"), expected);
        assert_eq!(texts(b"a # tail \\\nb#c"), expected);
    }

    #[test]
    fn a_comment_that_swallows_a_rule_is_warned_about() {
        let (statements, findings) = lexed(b"# old \\\nmap a b\nc");
        assert_eq!(statements, [vec![("c".to_owned(), 3, 1)]]);
        assert_eq!(findings.warnings.len(), 1);
        assert_eq!(findings.warnings[0].line, 2);
        let (_, quiet) = lexed(b"# old \\\n# more\nc");
        assert_eq!(quiet.warnings, []);
    }

    #[test]
    fn bytes_that_are_no_text_are_errors_at_their_column_and_the_rest_is_read() {
        let (statements, findings) = lexed(b"ab\xff c\nx\ry\nz\n");
        assert_eq!(statements, [vec![("z".to_owned(), 3, 1)]]);
        let at: Vec<_> = findings.errors.iter().map(|e| (e.line, e.column)).collect();
        assert_eq!(at, [(1, 3), (2, 2)]);
    }
}
