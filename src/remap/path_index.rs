//! Path prefixes, and the earliest rule among those of a path.

use super::target::PathPrefix;

/// Rules by the path prefix they take, for one host, scheme and port.
///
/// The prefixes are sorted, and each knows the longest other prefix that it
/// begins with. All prefixes of a path are then the nearest one at or below
/// it in the order and that one's chain of parents, since what sorts between
/// a prefix and the path begins with the prefix too.
#[derive(Debug, Default)]
pub(super) struct PathIndex {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    path: Box<str>,
    rule: usize,
    parent: Option<usize>,
}

impl PathIndex {
    /// Indexes (path prefix without the leading `/`, rule) pairs. Of two
    /// equal prefixes the earlier rule holds.
    pub(super) fn new(mut rules: Vec<(Box<str>, usize)>) -> Self {
        rules.sort_unstable();
        rules.dedup_by(|later, earlier| later.0 == earlier.0);
        let mut index = Self::default();
        let mut open: Vec<usize> = Vec::new();
        for (path, rule) in rules {
            while let Some(top) = open.last() {
                if index
                    .entries
                    .get(*top)
                    .is_some_and(|e| path.starts_with(&*e.path))
                {
                    break;
                }
                open.pop();
            }
            let parent = open.last().copied();
            open.push(index.entries.len());
            index.entries.push(Entry { path, rule, parent });
        }
        index
    }

    /// The earliest rule whose prefix `path` begins with. `path` is without
    /// its leading `/`.
    pub(super) fn earliest(&self, path: &str, ends: PathPrefix) -> Option<usize> {
        let above = self.entries.partition_point(|entry| *entry.path <= *path);
        let mut next = above.checked_sub(1);
        let mut earliest = None;
        while let Some(entry) = next.and_then(|at| self.entries.get(at)) {
            if takes(&entry.path, path, ends) {
                earliest = Some(earliest.map_or(entry.rule, |rule: usize| rule.min(entry.rule)));
            }
            next = entry.parent;
        }
        earliest
    }
}

/// Whether a rule with this path prefix takes a request for `path`; both are
/// without the leading `/`.
pub(super) fn takes(prefix: &str, path: &str, ends: PathPrefix) -> bool {
    let Some(rest) = path.strip_prefix(prefix) else {
        return false;
    };
    let at_boundary = || rest.is_empty() || rest.starts_with('/');
    match ends {
        PathPrefix::Byte => true,
        PathPrefix::Segment => prefix.is_empty() || prefix.ends_with('/') || at_boundary(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_prefix_ends_at_a_segment_unless_bytes_are_asked_for() {
        let cases = [
            ("b", "b", true),
            ("b", "b/c", true),
            ("b", "bzz", false),
            ("b/", "b", false),
            ("b/", "b/", true),
            ("b/", "b/c", true),
            ("", "bzz", true),
            ("b/c", "b/cd", false),
        ];
        for (prefix, path, taken) in cases {
            assert_eq!(
                takes(prefix, path, PathPrefix::Segment),
                taken,
                "{prefix} {path}"
            );
        }
        assert!(takes("b", "bzz", PathPrefix::Byte));
        assert!(!takes("b/", "b", PathPrefix::Byte));
    }

    #[test]
    fn the_earliest_rule_wins_not_the_longest_prefix() {
        let index = PathIndex::new(vec![
            ("a/b".into(), 2),
            ("a".into(), 1),
            ("a/b/c".into(), 3),
        ]);
        assert_eq!(index.earliest("a/b/c/d", PathPrefix::Segment), Some(1));
        let index = PathIndex::new(vec![("a/b".into(), 1), ("".into(), 2)]);
        assert_eq!(index.earliest("a/b", PathPrefix::Segment), Some(1));
        assert_eq!(index.earliest("a", PathPrefix::Segment), Some(2));
    }

    proptest! {
        #[test]
        fn it_answers_like_a_scan_of_all_prefixes(
            prefixes in prop::collection::vec("[ab/]{0,5}", 0..20),
            path in "[ab/]{0,8}",
            bytes in any::<bool>(),
        ) {
            let ends = if bytes { PathPrefix::Byte } else { PathPrefix::Segment };
            let scanned = prefixes.iter().position(|prefix| takes(prefix, &path, ends));
            let rules = prefixes.iter().enumerate();
            let rules = rules.map(|(rule, prefix)| (prefix.as_str().into(), rule)).collect();
            prop_assert_eq!(PathIndex::new(rules).earliest(&path, ends), scanned);
        }
    }
}
