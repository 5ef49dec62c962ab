//! Host patterns of `regex_` rules: linear-time regular expressions.

use regex_syntax::ParserBuilder;
use regex_syntax::ast::{ErrorKind, Span};
use regex_syntax::hir::Hir;

/// The most capture groups that a pattern may have: `$1` to `$9`.
pub(super) const MAX_CAPTURES: usize = 9;

/// Why a pattern is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatternFault {
    /// Where in the pattern, in bytes from 0.
    pub(super) offset: usize,
    /// The text at fault.
    pub(super) token: String,
    /// What is wrong with it.
    pub(super) what: String,
    /// What to do.
    pub(super) help: Option<&'static str>,
}

/// Reads a host pattern as the table will match it: bytes, without regard to
/// case (hosts come in lower case, and ATS lowers the pattern).
///
/// # Errors
/// The syntax error of `regex-syntax`: among others a pattern that is not
/// matched in linear time (look-around, back-references) or not ASCII.
pub fn parse_pattern(pattern: &str) -> Result<Hir, Box<regex_syntax::Error>> {
    let mut parser = ParserBuilder::new()
        .utf8(false)
        .unicode(false)
        .case_insensitive(true)
        .build();
    parser.parse(pattern).map_err(Box::new)
}

/// The number of capture groups of a valid pattern, without group 0.
pub(super) fn captures(pattern: &str) -> Result<usize, PatternFault> {
    let hir = parse_pattern(pattern).map_err(|error| fault_of(pattern, &error))?;
    let count = hir.properties().explicit_captures_len();
    if count > MAX_CAPTURES {
        return Err(PatternFault {
            offset: 0,
            token: pattern.to_owned(),
            what: format!("{count} capture groups, above the {MAX_CAPTURES} of $1 to $9"),
            help: Some("write (?:…) for groups that TO does not use"),
        });
    }
    Ok(count)
}

fn fault_of(pattern: &str, error: &regex_syntax::Error) -> PatternFault {
    let (span, what, help) = match error {
        regex_syntax::Error::Parse(error) => {
            let (what, help) = explained(error.kind());
            (*error.span(), what, help)
        }
        regex_syntax::Error::Translate(error) => (
            *error.span(),
            format!("bad pattern: {}", error.kind()),
            None,
        ),
        // The enum may grow; its text says all.
        other => return whole(pattern, format!("bad pattern: {other}")),
    };
    PatternFault {
        offset: span.start.offset,
        token: text_at(pattern, span),
        what,
        help,
    }
}

fn whole(pattern: &str, what: String) -> PatternFault {
    PatternFault {
        offset: 0,
        token: pattern.to_owned(),
        what,
        help: None,
    }
}

fn text_at(pattern: &str, span: Span) -> String {
    let text = pattern.get(span.start.offset..span.end.offset);
    text.filter(|text| !text.is_empty())
        .unwrap_or(pattern)
        .to_owned()
}

/// The two features of PCRE that cost exponential time get a reason; all
/// other kinds speak for themselves.
fn explained(kind: &ErrorKind) -> (String, Option<&'static str>) {
    if matches!(kind, ErrorKind::UnsupportedLookAround) {
        let what = "look-around can't be matched in linear time";
        return (what.into(), Some("write one rule for each case, in order"));
    }
    if matches!(kind, ErrorKind::UnsupportedBackreference) {
        let what = "a back-reference can't be matched in linear time";
        return (what.into(), Some("write what the group may hold again"));
    }
    (format!("bad pattern: {kind}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(pattern: &str) -> (usize, String) {
        let fault = captures(pattern).unwrap_err();
        (fault.offset, fault.what)
    }

    #[test]
    fn groups_are_counted_without_the_whole_match() {
        assert_eq!(captures("a.cn"), Ok(0));
        assert_eq!(captures(r"(.*)\.(?:cn|com)"), Ok(1));
        assert_eq!(captures("(a)(b)(c)(d)(e)(f)(g)(h)(i)"), Ok(9));
        let (_, what) = fault("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)");
        assert!(what.starts_with("10 capture groups"), "{what}");
    }

    #[test]
    fn what_costs_exponential_time_is_refused_by_name_at_its_place() {
        let look = "look-around can't be matched in linear time".to_owned();
        assert_eq!(fault("a(?=b)"), (1, look.clone()));
        assert_eq!(fault("(?<!b)a"), (0, look));
        let back = "a back-reference can't be matched in linear time".to_owned();
        assert_eq!(fault(r"(a)\1"), (3, back));
    }

    #[test]
    fn a_broken_pattern_is_an_error_at_its_place() {
        assert_eq!(fault("a(b").0, 1);
        assert_eq!(fault("*.a.cn").0, 0);
        assert!(captures("[é]").is_err());
    }
}
