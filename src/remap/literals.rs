//! Literals that a host must contain for a pattern to match it.

use regex_syntax::hir::{Class, Hir, HirKind};

/// More alternatives than this narrow little and cost much.
const MAX_LITERALS: usize = 16;

/// Texts of which every lower-case host that the pattern matches contains at
/// least one; none if there is no such set, or no good one.
pub(super) fn required(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let found = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => None,
        HirKind::Literal(_) | HirKind::Class(_) => exact(hir).map(|text| vec![text]),
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Repetition(_) => None,
        HirKind::Concat(parts) => of_concat(parts),
        HirKind::Alternation(branches) => of_alternation(branches),
    };
    found.filter(|set| set.len() <= MAX_LITERALS && shortest(set) > 0)
}

fn shortest(set: &[Vec<u8>]) -> usize {
    set.iter().map(Vec::len).min().unwrap_or(0)
}

/// The best set of any part, where neighbours that are plain text count as
/// one part.
fn of_concat(parts: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let mut sets = Vec::new();
    let mut run = Vec::new();
    for part in parts {
        match exact(part) {
            Some(text) => run.extend(text),
            None => {
                sets.push(vec![std::mem::take(&mut run)]);
                sets.extend(required(part));
            }
        }
    }
    sets.push(vec![run]);
    sets.into_iter().max_by_key(|set| shortest(set))
}

/// Every branch must have a set: a host may match any of them.
fn of_alternation(branches: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let sets: Option<Vec<_>> = branches.iter().map(required).collect();
    sets.map(|sets| sets.into_iter().flatten().collect())
}

/// The one text that the pattern matches in a lower-case host, if it is one.
fn exact(hir: &Hir) -> Option<Vec<u8>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(Vec::new()),
        HirKind::Literal(literal) => Some(literal.0.to_vec()),
        HirKind::Class(class) => exact_class(class).map(|byte| vec![byte]),
        HirKind::Capture(capture) => exact(&capture.sub),
        HirKind::Concat(parts) => {
            let parts: Option<Vec<_>> = parts.iter().map(exact).collect();
            parts.map(|parts| parts.concat())
        }
        HirKind::Repetition(_) | HirKind::Alternation(_) => None,
    }
}

/// Patterns are read without regard to case, so `a` is the class `[Aa]`: of
/// which a lower-case host can hold `a` only.
fn exact_class(class: &Class) -> Option<u8> {
    let Class::Bytes(class) = class else {
        return None;
    };
    let ranges = class.iter().flat_map(|r| r.start()..=r.end());
    let mut bytes = ranges.filter(|byte| !byte.is_ascii_uppercase());
    let first = bytes.next();
    first.filter(|_| bytes.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::remap::parse_pattern;

    fn of(pattern: &str) -> Option<Vec<String>> {
        let set = required(&parse_pattern(pattern).unwrap())?;
        Some(
            set.into_iter()
                .map(|b| String::from_utf8(b).unwrap())
                .collect(),
        )
    }

    #[test]
    fn the_longest_text_of_a_pattern_is_required() {
        assert_eq!(of(r"(.*)\.Example\.com"), Some(vec![".example.com".into()]));
        assert_eq!(of(r"img\d+\.a\.cn"), Some(vec![".a.cn".into()]));
        assert_eq!(of(r"^(www\.)a(x)$"), Some(vec!["www.ax".into()]));
        assert_eq!(of(r"(?:static)+\d"), Some(vec!["static".into()]));
    }

    #[test]
    fn alternatives_all_count_and_an_open_one_ends_it() {
        let both = vec!["alpha.cn".to_owned(), "beta.cn".into()];
        assert_eq!(of(r".*(?:\.alpha\.cn|\.beta\.cn)"), Some(both));
        assert_eq!(of(r"(?:alpha|.*)"), None);
    }

    #[test]
    fn a_pattern_that_takes_any_host_requires_nothing() {
        for open in ["(.*)", ".+", "[a-z]*", "(?:abc)?", "(?:abc)*", "[ab]+", ""] {
            assert_eq!(of(open), None, "{open}");
        }
    }
}
