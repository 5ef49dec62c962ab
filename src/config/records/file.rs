//! records.config: `CLASS NAME TYPE VALUE` a line.
//!
//! `#` begins a comment as the first visible character of a line, and after an
//! INT or FLOAT and blanks, where `//` does too; in a STRING it is text. A name
//! set twice has its last value. What can't be understood is skipped with a
//! warning, as ATS does; a value that its record can't take is an error.

use std::collections::BTreeMap;

use super::aliases::Setting;
use super::known::{Known, known, nearest_name};
use super::number::split_number;
use super::spec::RecordSpec;
use super::value::{RecordType, RecordValue, ValueError};
use crate::config::lines::{Cursor, Line, Word, decode, lines};
use crate::config::nearest::did_you_mean;
use crate::config::place::{Place, shortened};
use crate::config::{ConfigError, Findings};

/// The words that begin a line; all mean the same here.
pub(super) const CLASSES: [&str; 5] = ["CONFIG", "LOCAL", "PROCESS", "NODE", "CLUSTER"];
/// The words for types.
const TYPES: [&str; 4] = ["INT", "FLOAT", "STRING", "COUNTER"];
/// Unknown names of one file that the nearest name is sought for: it takes a
/// comparison with each valid name.
const NEAREST_MAX: usize = 100;

/// A value that a file gives a record.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRecord {
    /// The value, within the record's range.
    pub value: RecordValue,
    /// Where it stands.
    pub place: Place,
}

/// What a records.config says, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordsFile {
    /// Records of the table; a line by an alias stands under the record.
    pub records: BTreeMap<&'static str, FileRecord>,
    /// Names without a row, with their text: they have no effect, but can be
    /// asked for.
    pub others: BTreeMap<String, String>,
}

impl RecordsFile {
    /// Reads a file of this name.
    #[must_use]
    pub fn parse(file: &str, bytes: &[u8]) -> (Self, Findings) {
        let mut reader = Reader::default();
        match decode(file, bytes) {
            Ok(text) => lines(file, text).for_each(|line| reader.line(&line)),
            Err(error) => reader.found.errors.push(error),
        }
        (reader.file, reader.found)
    }
}

/// A line's parts, and their places.
struct Entry<'a> {
    name: Word<'a>,
    kind: Word<'a>,
    value: Word<'a>,
}

impl<'a> Entry<'a> {
    /// Reads a line that is not blank; `Err` says why it is skipped.
    fn read(line: &Line<'a>) -> Result<Self, ConfigError> {
        let mut cursor = line.cursor();
        one_of_words(line, &mut cursor, "class", &CLASSES)?;
        let name = expect_word(line, &mut cursor, "a name")?;
        let kind = one_of_words(line, &mut cursor, "type", &TYPES)?;
        let value = cursor.rest();
        if value.text.is_empty() {
            return Err(skipped(line, value, "a value is missing"));
        }
        Ok(Self { name, kind, value })
    }
}

/// The next word, which must be one of `valid`.
fn one_of_words<'a>(
    line: &Line<'a>,
    cursor: &mut Cursor<'a>,
    role: &str,
    valid: &[&'static str],
) -> Result<Word<'a>, ConfigError> {
    let word = expect_word(line, cursor, &format!("a {role}"))?;
    if valid.contains(&word.text) {
        return Ok(word);
    }
    let mut error = skipped(line, word, &format!("unknown {role}"));
    error.help = did_you_mean(word.text, valid.iter().copied())
        .or_else(|| Some(format!("one of {}", valid.join(", "))));
    Err(error)
}

/// The next word; `role` names it when it is missing.
fn expect_word<'a>(
    line: &Line<'a>,
    cursor: &mut Cursor<'a>,
    role: &str,
) -> Result<Word<'a>, ConfigError> {
    let end = cursor.clone().rest();
    cursor
        .word()
        .ok_or_else(|| skipped(line, end, &format!("{role} is missing")))
}

/// The warning for a line that is left out.
fn skipped(line: &Line<'_>, word: Word<'_>, what: &str) -> ConfigError {
    let what = format!("{what}; the line is skipped");
    line.place(word.column).error(word.text, what)
}

/// The file so far.
#[derive(Default)]
struct Reader {
    file: RecordsFile,
    found: Findings,
    unknown: usize,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>) {
        if line.is_blank() {
            return;
        }
        match Entry::read(line) {
            Ok(entry) => self.entry(line, &entry),
            Err(warning) => self.found.warnings.push(warning),
        }
    }

    fn entry(&mut self, line: &Line<'_>, entry: &Entry<'_>) {
        match known(entry.name.text) {
            Some(Known::Record(spec)) => self.setting(line, entry, spec.kind, |text| {
                spec.read(text).map(|value| vec![(spec, value)])
            }),
            Some(Known::Alias(alias)) => {
                self.setting(line, entry, RecordType::Int, |text| alias.read(text));
            }
            Some(Known::Ats) => {
                self.other(
                    line,
                    entry,
                    "a record of ATS that Strata does not have",
                    None,
                );
            }
            Some(Known::Metric) => {
                self.other(line, entry, "a metric, which can't be set", None);
            }
            None => self.unknown(line, entry),
        }
    }

    /// A line that sets records of the table.
    fn setting(
        &mut self,
        line: &Line<'_>,
        entry: &Entry<'_>,
        kind: RecordType,
        read: impl Fn(&str) -> Result<Vec<Setting>, ValueError>,
    ) {
        if entry.kind.text != kind.word() {
            self.warn(
                line,
                entry.kind,
                &format!("{} is of type {}", entry.name.text, kind.word()),
            );
        }
        let read_all = split_number(kind, entry.value.text).and_then(|(text, rest)| {
            self.trailing(line, entry, rest);
            read(text)
        });
        match read_all {
            Ok(settings) => settings
                .into_iter()
                .for_each(|set| self.store(line, entry, set)),
            Err(error) => self.refuse(line, entry, &error),
        }
    }

    /// Warns of what follows a number and is no comment.
    fn trailing(&mut self, line: &Line<'_>, entry: &Entry<'_>, rest: &str) {
        let text = rest.trim_start();
        let comment = text.starts_with('#') || text.starts_with("//");
        if text.is_empty() || (comment && text.len() < rest.len()) {
            return;
        }
        let what = format!("\"{}\" after the number is ignored", shortened(text));
        let mut warning = line.place(entry.value.column).error(entry.value.text, what);
        warning.help = Some(trailing_help(text).into());
        self.found.warnings.push(warning);
    }

    fn store(&mut self, line: &Line<'_>, entry: &Entry<'_>, (spec, value): Setting) {
        if let Some(what) = spec.unheeded(&value) {
            self.warn(line, entry.name, &what);
        }
        self.warn_of_comment(line, entry, spec);
        let place = line.place(entry.value.column);
        let record = FileRecord { value, place };
        if let Some(first) = self.file.records.insert(spec.name, record) {
            let first = first.place.line;
            let what = format!(
                "{} is set in line {first} already; this line holds",
                spec.name
            );
            self.warn(line, entry.name, &what);
        }
    }

    /// A `#` after a string looks like a comment, but is part of the value.
    fn warn_of_comment(&mut self, line: &Line<'_>, entry: &Entry<'_>, spec: &RecordSpec) {
        let comments = [" #", "\t#", " //", "\t//"];
        let seems = comments.iter().any(|mark| entry.value.text.contains(mark));
        if spec.kind == RecordType::String && seems {
            let what = "a STRING is the whole rest of the line, with what looks like a comment";
            self.warn(line, entry.value, what);
        }
    }

    fn refuse(&mut self, line: &Line<'_>, entry: &Entry<'_>, error: &ValueError) {
        let what = format!("{}: {error}", entry.name.text);
        let place = line.place(entry.value.column);
        self.found.errors.push(place.error(entry.value.text, what));
    }

    fn unknown(&mut self, line: &Line<'_>, entry: &Entry<'_>) {
        self.unknown += 1;
        let near = (self.unknown <= NEAREST_MAX).then(|| nearest_name(entry.name.text));
        let help = near.flatten().map(|name| format!("did you mean {name}?"));
        self.other(line, entry, "unknown", help);
    }

    /// A name without a row: kept, without an effect.
    fn other(&mut self, line: &Line<'_>, entry: &Entry<'_>, is: &str, help: Option<String>) {
        let Entry { name, value, .. } = entry;
        let what = format!("{} is {is}; the line has no effect", shortened(name.text));
        let mut warning = line.place(name.column).error("", what);
        warning.help = help;
        self.found.warnings.push(warning);
        self.file.others.insert(name.text.into(), value.text.into());
    }

    fn warn(&mut self, line: &Line<'_>, word: Word<'_>, what: &str) {
        let place = line.place(word.column);
        self.found.warnings.push(place.error(word.text, what));
    }
}

/// What to do about text after a number.
fn trailing_help(text: &str) -> &'static str {
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        "a size ends in K, M, G or T, upper case"
    } else {
        "a comment after a number begins with a blank and # or //"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (RecordsFile, Findings) {
        RecordsFile::parse("records.config", text.as_bytes())
    }

    fn value(file: &RecordsFile, name: &str) -> String {
        file.records[name].value.to_string()
    }

    fn shown(errors: &[ConfigError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    const CUTOFF: &str = "proxy.config.cache.ram_cache_cutoff";
    const PORTS: &str = "proxy.config.http.server_ports";

    #[test]
    fn a_number_may_be_followed_by_a_comment() {
        for comment in ["# forty", "// forty", " #", "\t//x", ""] {
            let (file, found) = parse(&format!("CONFIG {CUTOFF} INT 40 {comment}"));
            assert_eq!(found, Findings::default(), "{comment}");
            assert_eq!(value(&file, CUTOFF), "40");
        }
    }

    #[test]
    fn a_record_that_is_set_twice_has_its_last_value_and_a_warning() {
        let name = "proxy.config.http.cache.http";
        let text = format!("CONFIG {name} INT 0\n\nCONFIG {name} INT 1\n");
        let (file, found) = parse(&text);
        assert_eq!(file.records[name].place.line, 3);
        let what = format!("{name} is set in line 1 already; this line holds");
        let warned = format!("records.config:3:8: {what} (at \"{name}\")");
        assert_eq!(shown(&found.warnings), [warned]);
    }

    #[test]
    fn other_text_after_a_number_is_warned_about() {
        for (text, help) in [
            ("5k", "upper case"),
            ("5# x", "with a blank"),
            ("5 6", "with a blank"),
        ] {
            let (file, found) = parse(&format!("CONFIG {CUTOFF} INT {text}"));
            assert_eq!(value(&file, CUTOFF), "5");
            assert!(found.is_usable());
            assert_eq!(found.warnings.len(), 1, "{text}");
            assert!(
                found.warnings[0].help.as_ref().unwrap().contains(help),
                "{text}"
            );
        }
    }

    #[test]
    fn a_string_is_the_rest_of_the_line_as_it_is() {
        let (file, found) = parse(&format!("CONFIG {PORTS} STRING  \"8080\"  8081 \t"));
        assert_eq!(value(&file, PORTS), "\"8080\"  8081");
        assert_eq!(found, Findings::default());
        let (file, found) = parse(&format!("CONFIG {PORTS} STRING 8080 # main"));
        assert_eq!(value(&file, PORTS), "8080 # main");
        assert_eq!(found.warnings.len(), 1);
    }

    #[test]
    fn all_classes_blanks_marks_and_line_ends_are_taken() {
        for class in CLASSES {
            let text = format!("\u{feff}\t {class}\t{CUTOFF}  INT\t0x10K\r\n# x\r\n\r\n  # y");
            let (file, found) = parse(&text);
            assert_eq!(found, Findings::default(), "{class}");
            assert_eq!(value(&file, CUTOFF), "16384");
        }
    }

    #[test]
    fn what_can_not_be_understood_is_skipped_with_its_place() {
        let (file, found) =
            parse("CONFG a INT 1\nCONFIG\nCONFIG a INTT 1\nCONFIG a INT\nconfig a INT 1");
        assert_eq!(file, RecordsFile::default());
        assert_eq!(
            shown(&found.warnings),
            [
                "records.config:1:1: unknown class; the line is skipped (at \"CONFG\"); did you mean CONFIG?",
                "records.config:2:7: a name is missing; the line is skipped",
                "records.config:3:10: unknown type; the line is skipped (at \"INTT\"); did you mean INT?",
                "records.config:4:13: a value is missing; the line is skipped",
                "records.config:5:1: unknown class; the line is skipped (at \"config\"); did you mean CONFIG?",
            ]
        );
    }

    #[test]
    fn the_last_value_of_a_name_or_its_alias_holds() {
        let old = "proxy.config.http.anonymize_insert_client_ip";
        let new = "proxy.config.http.insert_client_ip";
        let (file, _) = parse(&format!("CONFIG {new} INT 1\nCONFIG {old} INT 0 # no\n"));
        assert_eq!(value(&file, new), "0");
        let (file, _) = parse(&format!("CONFIG {old} INT 0\nCONFIG {new} INT 1"));
        assert_eq!(value(&file, new), "1");
        assert_eq!(file.records[new].place.line, 2);
    }

    #[test]
    fn a_value_the_record_can_not_take_is_an_error_with_its_range() {
        let (file, found) = parse(
            "CONFIG proxy.config.http.cache.http INT 2\nCONFIG proxy.config.http.cache.http INT on\n\
             CONFIG proxy.config.log.default_format STRING json",
        );
        assert!(file.records.is_empty());
        assert_eq!(
            shown(&found.errors),
            [
                "records.config:1:41: proxy.config.http.cache.http: 2 is outside its range: 0 to 1 (at \"2\")",
                "records.config:2:41: proxy.config.http.cache.http: \"on\" is not a number (at \"on\")",
                "records.config:3:47: proxy.config.log.default_format: json is outside its range: strata, squid (at \"json\")",
            ]
        );
    }

    #[test]
    fn a_wrong_type_word_is_warned_about_and_the_value_read_as_the_record_needs() {
        let (file, found) = parse(&format!("CONFIG {CUTOFF} STRING 40"));
        assert_eq!(value(&file, CUTOFF), "40");
        assert_eq!(found.warnings.len(), 1);
    }

    #[test]
    fn names_without_an_effect_are_warned_about_by_name() {
        let (file, found) = parse(
            "CONFIG proxy.config.admin.admin_user STRING admin\n\
             CONFIG proxy.config.http.chunking_enabled INT 0\n\
             CONFIG proxy.config.http.chunking_enabled INT 1\n\
             CONFIG proxy.config.http.chunking_enable INT 1",
        );
        assert_eq!(file.others["proxy.config.admin.admin_user"], "admin");
        let shown = shown(&found.warnings);
        assert_eq!(shown.len(), 4);
        assert!(shown[0].contains("proxy.config.admin.admin_user is a record of ATS"));
        assert!(shown[1].contains("chunking_enabled is not honoured yet"));
        assert!(shown[2].contains("is set in line 2 already"));
        assert!(shown[3].ends_with("did you mean proxy.config.http.chunking_enabled?"));
    }

    #[test]
    fn many_unknown_names_are_read_fast() {
        let text: String = (0..20_000)
            .map(|n| format!("CONFIG proxy.config.unknown.{n} INT 1\n"))
            .collect();
        let (file, found) = parse(&text);
        assert_eq!(file.others.len(), 20_000);
        assert_eq!(found.warnings.len(), 20_000);
    }

    #[test]
    fn a_line_of_a_megabyte_gives_a_short_message() {
        let long = "9".repeat(1 << 20);
        for text in [
            format!("CONFIG {CUTOFF} INT {long}"),
            format!("CONFIG {CUTOFF} INT 1 {long}"),
            format!("CONFIG {long} INT 1"),
            format!("CONFIG {CUTOFF} {long} 1"),
            format!("CONFIG proxy.config.log.default_format STRING {long}"),
        ] {
            let (_, found) = parse(&text);
            let all = shown(&[found.errors, found.warnings].concat());
            assert_eq!(all.len(), 1);
            assert!(all[0].len() < 600, "{}", all[0]);
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_refuse_the_file() {
        let (_, found) = RecordsFile::parse("records.config", b"CONFIG \xFF");
        assert_eq!(found.errors.len(), 1);
    }
}
