//! Files of ATS that have no effect here yet: an operator who brings one must
//! be told, or believes that its rules hold.

use super::ConfigError;
use super::place::Place;

/// Such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnheededFile {
    /// Its name in the configuration directory, unless a record names another.
    pub name: &'static str,
    /// That record.
    pub record: Option<&'static str>,
}

/// Every such file.
pub const UNHEEDED_FILES: [UnheededFile; 7] = [
    named_by("logging.yaml", "proxy.config.log.config.filename"),
    named_by("logs_xml.config", "proxy.config.log.xml_config_file"),
    named_by("parent.config", "proxy.config.http.parent_proxy.file"),
    UnheededFile {
        name: "plugin.config",
        record: None,
    },
    named_by("socks.config", "proxy.config.socks.socks_config_file"),
    named_by("splitdns.config", "proxy.config.dns.splitdns.filename"),
    named_by(
        "strategies.yaml",
        "proxy.config.url_remap.strategies.filename",
    ),
];

const fn named_by(name: &'static str, record: &'static str) -> UnheededFile {
    UnheededFile {
        name,
        record: Some(record),
    }
}

impl UnheededFile {
    /// The name that holds, where `value` tells what a record says.
    #[must_use]
    pub fn name_in_force(&self, value: impl Fn(&str) -> Option<String>) -> String {
        let said = self.record.and_then(value);
        let said = said.filter(|name| !name.is_empty() && name != "NULL");
        said.unwrap_or_else(|| self.name.to_owned())
    }
}

/// A warning at the first line of such a file that is neither blank nor a
/// comment (`#` to the line's end, `<!-- … -->` over lines); none if all are.
#[must_use]
pub fn unheeded(file: &str, bytes: &[u8]) -> Option<ConfigError> {
    let text = String::from_utf8_lossy(bytes);
    let (line, column, token) = first_content(text.trim_start_matches('\u{FEFF}'))?;
    let place = Place {
        file: file.into(),
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
    };
    let what = "this file of ATS is not supported yet: nothing in it has an effect";
    Some(place.error(token, what))
}

/// Line, column and text of the first content.
fn first_content(text: &str) -> Option<(usize, usize, &str)> {
    let mut in_comment = false;
    for (number, line) in text.lines().enumerate() {
        let rest = after_comments(line, &mut in_comment);
        if !rest.is_empty() && !rest.starts_with('#') {
            let before = line.get(..line.len() - rest.len()).unwrap_or_default();
            return Some((number + 1, before.chars().count() + 1, rest.trim_end()));
        }
    }
    None
}

/// The rest of a line behind its blanks and `<!-- -->`, which may go on in the
/// next line.
fn after_comments<'a>(line: &'a str, in_comment: &mut bool) -> &'a str {
    let mut rest = line;
    loop {
        if *in_comment {
            let Some((_, behind)) = rest.split_once("-->") else {
                return "";
            };
            (rest, *in_comment) = (behind, false);
        }
        rest = rest.trim_start();
        match rest.strip_prefix("<!--") {
            Some(comment) => (rest, *in_comment) = (comment, true),
            None => return rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::records::RecordsFile;

    fn warning(text: &str) -> Option<String> {
        unheeded("parent.config", text.as_bytes()).map(|warning| warning.to_string())
    }

    #[test]
    fn every_record_that_names_a_file_is_one_of_ats() {
        let names = UNHEEDED_FILES.iter().filter_map(|file| file.record);
        for name in names {
            let text = format!("CONFIG {name} STRING other\n");
            let (_, found) = RecordsFile::parse("records.config", text.as_bytes());
            let said: Vec<_> = found.warnings.iter().map(ToString::to_string).collect();
            assert!(
                !said.iter().any(|text| text.contains("unknown")),
                "{said:?}"
            );
            assert_eq!(found.errors, [], "{name}");
        }
    }

    #[test]
    fn a_record_names_another_file_and_null_none() {
        let file = UNHEEDED_FILES[0];
        assert_eq!(file.name_in_force(|_| None), "logging.yaml");
        assert_eq!(file.name_in_force(|_| Some("NULL".into())), "logging.yaml");
        let said = |name: &str| name.ends_with("log.config.filename").then(|| "h".into());
        assert_eq!(file.name_in_force(said), "h");
    }

    #[test]
    fn blanks_and_comments_are_no_content() {
        for text in [
            "",
            "\n \t\r\n",
            "# volume=1\n  # size=2",
            "\u{FEFF}# a\n",
            "<!-- a -->\n<!--\nvolume=1\n--> <!-- b -->\n",
        ] {
            assert_eq!(warning(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_content_is_named_with_its_place() {
        let text = warning("# a\n\n  volume=1 scheme=http\nvolume=2\n").unwrap();
        assert!(text.starts_with("parent.config:3:3: "), "{text}");
        assert!(text.ends_with("(at \"volume=1 scheme=http\")"), "{text}");
        let text = warning("<!-- é\n--> <LogFormat>\n").unwrap();
        assert!(text.starts_with("parent.config:2:5: "), "{text}");
        assert!(unheeded("f", b"\xff\xfe").is_some());
    }
}
