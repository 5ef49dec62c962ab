//! Names with `*` for any characters, as `fqdn` has them.

use regex::Regex;

/// The longest name that DNS has.
const NAME_BYTES_MAX: usize = 253;

/// Names in lower case; `*` stands for any characters, dots and none at all
/// included, as in ATS.
#[derive(Clone, Debug)]
pub struct NamePattern {
    text: Box<str>,
    /// None for a name without `*`.
    glob: Option<Regex>,
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

impl NamePattern {
    /// Reads a name; the error says why it is none.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_lowercase();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
        if text.is_empty() || text.len() > NAME_BYTES_MAX || !text.bytes().all(fits) {
            return Err(format!("no host name of 1 to {NAME_BYTES_MAX} characters"));
        }
        let glob = text.contains('*').then(|| glob(&text)).transpose()?;
        let text = text.into();
        Ok(Self { text, glob })
    }

    /// The name as it is written, in lower case.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is one name alone.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.glob.is_none()
    }

    /// How many `*` it has.
    pub(super) fn stars(&self) -> usize {
        self.text.matches('*').count()
    }

    /// What the `*` stand for in `name`, which is in lower case; none if it does
    /// not fit. Those in front take as much as they can.
    #[must_use]
    pub fn captures<'n>(&self, name: &'n str) -> Option<Vec<&'n str>> {
        let Some(glob) = &self.glob else {
            return (name == &*self.text).then(Vec::new);
        };
        if !self.may_fit(name) {
            return None;
        }
        let found = glob.captures(name)?;
        let stars = found.iter().skip(1);
        Some(
            stars
                .map(|star| star.map_or("", |star| star.as_str()))
                .collect(),
        )
    }

    /// What most names fail by, without the pattern's help: both ends.
    fn may_fit(&self, name: &str) -> bool {
        let first = self.text.split('*').next().unwrap_or_default();
        let last = self.text.rsplit('*').next().unwrap_or_default();
        name.starts_with(first) && name.ends_with(last)
    }
}

fn glob(text: &str) -> Result<Regex, String> {
    let pieces: Vec<_> = text.split('*').map(regex::escape).collect();
    let pattern = format!("^{}$", pieces.join("(.*)"));
    Regex::new(&pattern).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_and_is_told() {
        let captures = |pattern: &str, name| {
            let pattern = NamePattern::parse(pattern).unwrap();
            pattern.captures(name).map(|all| all.join("|"))
        };
        assert_eq!(captures("A.example", "a.example").unwrap(), "");
        assert_eq!(captures("a.example", "xa.example"), None);
        assert_eq!(captures("*.example", "a.b.example").unwrap(), "a.b");
        assert_eq!(captures("*.example", "aexample"), None);
        assert_eq!(captures("*.a.*.com", "x.a.a.y.com").unwrap(), "x.a|y");
        assert_eq!(captures("*", "").unwrap(), "");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "a b", "a/b", "ä.example", &"a".repeat(254)] {
            assert!(NamePattern::parse(text).is_err(), "{text}");
        }
    }
}
