//! Setting one record in a file's text, and leaving all else as it is.

use super::aliases::alias;
use super::file::CLASSES;
use super::number::split_number;
use super::value::RecordType;

/// The text of records.config with the record set to `value`. The last line
/// that names it gets the value in place of its own, and keeps its class, its
/// blanks and its comment. Without such a line, or where a later one sets the
/// record by another name, a line is added at the end. Neither `name` nor
/// `value` is checked.
#[must_use]
pub fn set_in_text(text: &str, name: &str, kind: RecordType, value: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let parts = lines.iter().map(|line| Parts::of(line));
    let last = parts
        .enumerate()
        .filter_map(|(at, parts)| Some((at, parts?)))
        .rfind(|(_, parts)| parts.sets(name));
    match last {
        Some((at, parts)) if parts.name() == name => {
            let (before, after) = lines.split_at(at);
            let after = after.get(1..).unwrap_or_default();
            before.concat() + &parts.with(kind, value) + &after.concat()
        }
        _ => appended(text, &format!("CONFIG {name} {} {value}", kind.word())),
    }
}

/// The text with a line more, its end as the other lines have it.
fn appended(text: &str, line: &str) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let open = !text.is_empty() && !text.ends_with('\n');
    let close = if open { end } else { "" };
    format!("{text}{close}{line}{end}")
}

/// A line's parts, each with the blanks before it; together they are the line.
struct Parts<'a> {
    class: &'a str,
    name: &'a str,
    kind: &'a str,
    value: &'a str,
    end: &'a str,
}

impl<'a> Parts<'a> {
    /// The parts of a line that may set a record.
    fn of(line: &'a str) -> Option<Self> {
        let body = line.trim_end();
        let (_, end) = line.split_at(body.len());
        let (class, rest) = first_word(body);
        let (name, rest) = first_word(rest);
        let (kind, value) = first_word(rest);
        let bare = class.trim_start_matches('\u{feff}').trim();
        CLASSES.contains(&bare).then_some(Self {
            class,
            name,
            kind,
            value,
            end,
        })
    }

    fn name(&self) -> &'a str {
        self.name.trim()
    }

    /// Whether the line sets the record of this name, by it or by an alias.
    fn sets(&self, record: &str) -> bool {
        let aliased = |alias: &super::Alias| alias.specs().any(|spec| spec.name == record);
        self.name() == record || alias(self.name()).is_some_and(aliased)
    }

    /// The line with another value.
    fn with(&self, kind: RecordType, value: &str) -> String {
        let Self { class, name, .. } = self;
        let comment = comment_after(kind, self.value.trim_start());
        let (to_kind, to_value) = (blanks(self.kind), blanks(self.value));
        let word = kind.word();
        format!(
            "{class}{name}{to_kind}{word}{to_value}{value}{comment}{}",
            self.end
        )
    }
}

/// The comment after a number, with the blanks before it.
fn comment_after(kind: RecordType, value: &str) -> &str {
    match split_number(kind, value) {
        Ok((_, rest)) if rest.starts_with([' ', '\t']) => rest,
        _ => "",
    }
}

/// The first word with the blanks before it, and the rest.
fn first_word(text: &str) -> (&str, &str) {
    let start = text.len() - text.trim_start().len();
    let end = text.trim_start().find(char::is_whitespace);
    text.split_at(end.map_or(text.len(), |end| start + end))
}

/// The blanks before a part; one where it is missing.
fn blanks(part: &str) -> &str {
    let (blanks, _) = part.split_at(part.len() - part.trim_start().len());
    if blanks.is_empty() { " " } else { blanks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::records::RecordsFile;

    const CUTOFF: &str = "proxy.config.cache.ram_cache_cutoff";
    const PORTS: &str = "proxy.config.http.server_ports";

    fn cutoff(text: &str, value: &str) -> String {
        set_in_text(text, CUTOFF, RecordType::Int, value)
    }

    #[test]
    fn a_value_is_replaced_in_its_line_and_its_comment_kept() {
        let text = format!("# head\r\n\tCONFIG  {CUTOFF}\tINT  40   # forty\r\nCONFIG a INT 1");
        let expected = text.replace("40 ", "64K ");
        assert_eq!(cutoff(&text, "64K"), expected);
        let text = format!("LOCAL {CUTOFF} INT 40// glued\n");
        assert_eq!(cutoff(&text, "1"), format!("LOCAL {CUTOFF} INT 1\n"));
    }

    #[test]
    fn a_string_is_replaced_whole() {
        let text = format!("\u{feff}CONFIG {PORTS} STRING 8080 8081 # x \n# end");
        let new = set_in_text(&text, PORTS, RecordType::String, "9090");
        assert_eq!(new, format!("\u{feff}CONFIG {PORTS} STRING 9090 \n# end"));
    }

    #[test]
    fn the_last_of_several_lines_is_the_one_replaced() {
        let text = format!("CONFIG {CUTOFF} INT 1\nCONFIG {CUTOFF} INT 2\n");
        let expected = format!("CONFIG {CUTOFF} INT 1\nCONFIG {CUTOFF} INT 3\n");
        assert_eq!(cutoff(&text, "3"), expected);
    }

    #[test]
    fn a_commented_or_missing_line_leads_to_a_new_one() {
        let line = format!("CONFIG {CUTOFF} INT 9\n");
        assert_eq!(cutoff("", "9"), line);
        let text = format!("#CONFIG {CUTOFF} INT 1\n# CONFIG {CUTOFF} INT 1");
        assert_eq!(cutoff(&text, "9"), format!("{text}\n{line}"));
        assert_eq!(
            cutoff("# a\r\n", "9"),
            format!("# a\r\n{}\r\n", line.trim_end())
        );
    }

    #[test]
    fn a_later_line_by_an_old_name_is_overridden_by_a_new_line() {
        let new = "proxy.config.http.insert_client_ip";
        let old = "proxy.config.http.anonymize_insert_client_ip";
        let text = format!("CONFIG {new} INT 1\nCONFIG {old} INT 0\n");
        let set = set_in_text(&text, new, RecordType::Int, "2");
        assert_eq!(set, format!("{text}CONFIG {new} INT 2\n"));
    }

    #[test]
    fn a_line_without_value_or_type_is_completed() {
        let expected = format!("CONFIG {CUTOFF} INT 9\n");
        assert_eq!(cutoff(&format!("CONFIG {CUTOFF}\n"), "9"), expected);
        assert_eq!(cutoff(&format!("CONFIG {CUTOFF} STRING\n"), "9"), expected);
    }

    #[test]
    fn what_is_written_is_what_is_read_back() {
        let texts = [
            "",
            "\u{feff}",
            "# x",
            "CONFIG a INT 1\r\n",
            "CONFIG proxy.config.http.cache.http INT 1 # y",
        ];
        for text in texts {
            let (file, _) = RecordsFile::parse("f", cutoff(text, "4096").as_bytes());
            assert_eq!(file.records[CUTOFF].value.to_string(), "4096", "{text}");
        }
    }
}
