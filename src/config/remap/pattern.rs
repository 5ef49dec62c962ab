//! Host patterns of `regex_` rules: linear-time regular expressions.

use regex_syntax::ParserBuilder;
use regex_syntax::ast::{ErrorKind, Span};
use regex_syntax::hir::{Class, Hir, HirKind, Look};

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

/// Reads a pattern that a rule may have: with as many capture groups as TO can
/// refer to, or fewer.
pub(super) fn checked(pattern: &str) -> Result<Hir, PatternFault> {
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
    Ok(hir)
}

/// Bytes of hosts in lower case, besides letters and digits: names, and IPv6
/// addresses in brackets.
const HOST_MARKS: &[u8] = b"-._~:[]";

/// Whether a pattern is a catch-all: by its shape it takes every host there
/// is, as `(.*)`, `.+` and `[^,]*` do. One that wants as much as a dot, as
/// `(.*)\.(.*)` does, is none.
pub(super) fn takes_every_host(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Capture(capture) => takes_every_host(&capture.sub),
        HirKind::Repetition(repetition) => {
            repetition.min <= 1 && repetition.max.is_none() && takes_every_byte(&repetition.sub)
        }
        HirKind::Alternation(branches) => branches.iter().any(takes_every_host),
        HirKind::Concat(parts) => {
            let mut needed = parts.iter().filter(|part| !is_optional(part));
            let every = parts.iter().any(takes_every_host);
            every && needed.next().is_none_or(takes_every_host) && needed.next().is_none()
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}

fn takes_every_byte(hir: &Hir) -> bool {
    if let HirKind::Capture(capture) = hir.kind() {
        return takes_every_byte(&capture.sub);
    }
    let HirKind::Class(Class::Bytes(class)) = hir.kind() else {
        return false;
    };
    let takes = |byte: u8| class.iter().any(|r| (r.start()..=r.end()).contains(&byte));
    let letters = (b'a'..=b'z').chain(b'0'..=b'9');
    letters.chain(HOST_MARKS.iter().copied()).all(takes)
}

/// Whether a part of a pattern asks nothing of a host: it may be left out, or
/// says where the host begins or ends.
fn is_optional(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(Look::Start | Look::End) => true,
        HirKind::Repetition(repetition) => repetition.min == 0,
        HirKind::Capture(capture) => is_optional(&capture.sub),
        HirKind::Concat(parts) => parts.iter().all(is_optional),
        HirKind::Alternation(branches) => branches.iter().any(is_optional),
        HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
    }
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

    fn captures(pattern: &str) -> Result<usize, PatternFault> {
        checked(pattern).map(|hir| hir.properties().explicit_captures_len())
    }

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
    fn a_catch_all_is_told_by_its_shape() {
        let every = |pattern: &str| takes_every_host(&parse_pattern(pattern).unwrap());
        for catch_all in [
            "(.*)",
            ".*",
            ".+",
            "(.+?)",
            "^(.*)$",
            "(?:.*)()",
            "([^/]*)",
            "(.)*",
            "a|(.*)",
            r"(.*)(?::\d+)?",
        ] {
            assert!(every(catch_all), "{catch_all}");
        }
        for some in [
            r"(.*)\.cn",
            r"(.*)\.(.*)",
            "x.*",
            ".{2,}",
            ".?",
            ".",
            "[a-z0-9.-]*",
            "(a*)(b*)",
            r"\b.*",
            ".+.+",
            "a|b",
            "(?:a.*)?",
        ] {
            assert!(!every(some), "{some}");
        }
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
