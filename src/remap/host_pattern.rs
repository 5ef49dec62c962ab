//! A host pattern that is compiled when a host first comes near it.

use super::target::{HostRegex, RemapOptions};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};
use std::sync::OnceLock;

/// The most bytes that one compiled pattern may take.
const MAX_COMPILED: usize = 1 << 20;

/// A pattern of so few steps compiles to far less than [`MAX_COMPILED`]: a
/// step takes at most 64 bytes. Others are compiled at load, to be judged.
const SURELY_SMALL: usize = MAX_COMPILED / 64 / 4;

/// The host pattern of one rule.
///
/// A compiled pattern takes some twenty kilobytes and up to a millisecond,
/// and a table of ten thousand uses few of them: so load only makes sure that
/// it will compile.
#[derive(Debug)]
pub(super) struct HostPattern {
    text: Box<str>,
    compiled: OnceLock<Option<Regex>>,
}

impl HostPattern {
    /// Makes sure that `pattern`, which was parsed to `hir`, compiles.
    ///
    /// # Errors
    /// What to tell the operator of a pattern that is too large.
    pub(super) fn new(pattern: &str, hir: &Hir, options: RemapOptions) -> Result<Self, String> {
        let text = match options.host_regex {
            HostRegex::Anchored => format!(r"\A(?:{pattern})\z"),
            HostRegex::Search => pattern.to_owned(),
        };
        let compiled = OnceLock::new();
        if steps(hir) > SURELY_SMALL {
            let regex = compile(&text).map_err(|error| fault(&error))?;
            compiled.get_or_init(|| Some(regex));
        }
        Ok(Self {
            text: text.into(),
            compiled,
        })
    }

    /// The compiled pattern; none, which [`Self::new`] rules out, is a
    /// pattern that takes no host.
    pub(super) fn regex(&self) -> Option<&Regex> {
        let compiled = self.compiled.get_or_init(|| compile(&self.text).ok());
        compiled.as_ref()
    }

    /// Whether the pattern takes `host`, which is in lower case.
    pub(super) fn is_match(&self, host: &str) -> bool {
        self.regex()
            .is_some_and(|regex| regex.is_match(host.as_bytes()))
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text)
        .unicode(false)
        .case_insensitive(true)
        .size_limit(MAX_COMPILED)
        .build()
}

fn fault(error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(limit) = error {
        return format!("the pattern takes more than {limit} bytes once compiled");
    }
    format!("bad pattern: {error}")
}

/// An upper bound of the states and byte ranges of the compiled pattern, in
/// which a repeated part stands as often as it may repeat.
fn steps(hir: &Hir) -> usize {
    let sum = |parts: &[Hir]| parts.iter().map(steps).fold(2, usize::saturating_add);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len().saturating_add(1),
        // Never made without Unicode; if it were, load would compile it.
        HirKind::Class(Class::Unicode(_)) => usize::MAX,
        HirKind::Capture(capture) => steps(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) => sum(parts),
        HirKind::Alternation(branches) => sum(branches).saturating_add(branches.len()),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1);
            let times = usize::try_from(times).unwrap_or(usize::MAX);
            steps(&repetition.sub)
                .saturating_add(2)
                .saturating_mul(times.saturating_add(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::remap::parse_pattern;
    use proptest::prelude::*;

    fn made(pattern: &str) -> Result<HostPattern, String> {
        let hir = parse_pattern(pattern).unwrap();
        HostPattern::new(pattern, &hir, RemapOptions::default())
    }

    #[test]
    fn an_ordinary_pattern_is_not_compiled_before_a_host_comes() {
        let pattern = made(r"(.*)\.(?:img|static)[0-9]{1,3}\.example\.com").unwrap();
        assert!(pattern.compiled.get().is_none());
        assert!(pattern.is_match("a.img7.example.com"));
        assert!(pattern.compiled.get().is_some());
        assert!(!pattern.is_match("a.img.example.com"));
    }

    #[test]
    fn a_pattern_that_is_too_large_is_refused_at_load() {
        for large in [
            "(?:[a-z]{200}){200}",
            "((a{60}){60}){60}",
            "(?:(?:a|b)?){60000}",
        ] {
            let error = made(large).unwrap_err();
            assert!(
                error.contains("1048576 bytes once compiled"),
                "{large}: {error}"
            );
        }
    }

    #[test]
    fn a_large_pattern_that_compiles_is_kept() {
        let pattern = made("(?:[a-z]{20}){60}").unwrap();
        assert!(steps(&parse_pattern("(?:[a-z]{20}){60}").unwrap()) > 1_000);
        assert!(pattern.is_match(&"x".repeat(1_200)));
        assert!(!pattern.is_match(&"x".repeat(1_199)));
    }

    /// Patterns that are as large as the bound allows, in all their shapes.
    fn patterns() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("[^.]".to_owned()),
            Just("[acegikmoqsuwy0-9_-]".to_owned()),
            Just("(?:)".to_owned()),
            "[a-z.]{1,12}",
        ];
        leaf.prop_recursive(6, 40, 4, |inner| {
            prop_oneof![
                (inner.clone(), 0..40_u32, 0..40_u32)
                    .prop_map(|(part, min, more)| format!("(?:{part}){{{min},{}}}", min + more)),
                (inner.clone(), 0..40_u32).prop_map(|(part, min)| format!("(?:{part}){{{min},}}")),
                prop::collection::vec(inner.clone(), 1..4)
                    .prop_map(|parts| format!("(?:{})", parts.join("|"))),
                prop::collection::vec(inner, 1..4).prop_map(|parts| parts.concat()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_load_accepts_compiles(pattern in patterns()) {
            if let Ok(made) = made(&pattern) {
                prop_assert!(made.regex().is_some(), "{pattern}");
            }
        }
    }
}
