//! Files of ATS that have no effect here yet: an operator who brings one must
//! be told, or believes that its rules hold.

use super::ConfigError;
use super::place::Place;

/// The names of those files in the configuration directory.
pub const UNHEEDED_FILES: [&str; 12] = [
    "cache.config",
    "hosting.config",
    "logging.yaml",
    "logs_xml.config",
    "parent.config",
    "plugin.config",
    "sni.yaml",
    "socks.config",
    "splitdns.config",
    "ssl_multicert.config",
    "strategies.yaml",
    "volume.config",
];

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

    fn warning(text: &str) -> Option<String> {
        unheeded("volume.config", text.as_bytes()).map(|warning| warning.to_string())
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
        assert!(text.starts_with("volume.config:3:3: "), "{text}");
        assert!(text.ends_with("(at \"volume=1 scheme=http\")"), "{text}");
        let text = warning("<!-- é\n--> <LogFormat>\n").unwrap();
        assert!(text.starts_with("volume.config:2:5: "), "{text}");
        assert!(unheeded("f", b"\xff\xfe").is_some());
    }
}
