//! Which volumes the objects of a host go to.

use super::CacheKey;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use xxhash_rust::xxh3::xxh3_128;

/// Numbers of volumes.
pub type Volumes = BTreeSet<u32>;

/// The hosts of a rule; names in lower case, without a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hosts {
    /// Those without a rule of their own.
    Any,
    /// One host.
    Name(String),
    /// A domain, and every host below it.
    Domain(String),
}

/// The rules of hosting.config: a host's own rule goes before that of the
/// longest domain, and that before the one for all others. Without any of
/// these a host's objects go to all volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosting {
    /// The sets of volumes that rules name.
    sets: Vec<Volumes>,
    names: HashMap<Vec<u8>, usize>,
    domains: HashMap<Vec<u8>, usize>,
    any: Option<usize>,
    digest: u128,
}

impl Hosting {
    /// The rules; a later one of the same hosts holds.
    #[must_use]
    pub fn new(rules: &[(Hosts, Volumes)]) -> Self {
        let mut hosting = Self::default();
        for (hosts, volumes) in rules {
            let set = hosting.set(volumes);
            match hosts {
                Hosts::Any => hosting.any = Some(set),
                Hosts::Name(name) => drop(hosting.names.insert(name.clone().into(), set)),
                Hosts::Domain(name) => drop(hosting.domains.insert(name.clone().into(), set)),
            }
        }
        let mut told: Vec<String> = rules.iter().map(|rule| format!("{rule:?}")).collect();
        told.sort_unstable();
        if !told.is_empty() {
            hosting.digest = xxh3_128(told.join("\n").as_bytes());
        }
        hosting
    }

    /// The sets of volumes that rules name, each once.
    pub(super) fn sets(&self) -> &[Volumes] {
        &self.sets
    }

    /// Tells other rules apart; 0 for none.
    pub(super) const fn digest(&self) -> u128 {
        self.digest
    }

    /// The index of the set that a key's host has a rule for.
    pub(super) fn find(&self, key: &CacheKey) -> Option<usize> {
        if self.sets.is_empty() {
            return None;
        }
        let host = host_of(key.text());
        let own = self.names.get(&*host);
        own.or_else(|| self.domain(&host)).copied().or(self.any)
    }

    fn domain(&self, host: &[u8]) -> Option<&usize> {
        let dots = host.iter().enumerate().filter(|(_, byte)| **byte == b'.');
        let below = dots.filter_map(|(at, _)| host.get(at + 1..));
        let mut names = [host].into_iter().chain(below);
        names.find_map(|name| self.domains.get(name))
    }

    fn set(&mut self, volumes: &Volumes) -> usize {
        let known = self.sets.iter().position(|set| set == volumes);
        known.unwrap_or_else(|| {
            self.sets.push(volumes.clone());
            self.sets.len() - 1
        })
    }
}

/// The host in the text of a key, in lower case: of `http://host:port/path`.
fn host_of(text: &[u8]) -> Cow<'_, [u8]> {
    let scheme = text.windows(3).position(|part| part == b"://");
    let rest = &text[scheme.map_or(0, |at| at + 3)..];
    let end = rest.iter().position(|byte| b"/?#\0".contains(byte));
    let authority = &rest[..end.unwrap_or(rest.len())];
    let host = without_port(authority);
    match host.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(host.to_ascii_lowercase()),
        false => Cow::Borrowed(host),
    }
}

/// An IPv6 address keeps its brackets.
fn without_port(authority: &[u8]) -> &[u8] {
    let colon = authority.iter().rposition(|byte| *byte == b':');
    let bracket = authority.iter().rposition(|byte| *byte == b']');
    match colon {
        Some(colon) if bracket < Some(colon) => &authority[..colon],
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(hosting: &Hosting, url: &'static str) -> Option<Vec<u32>> {
        let set = hosting.find(&CacheKey::of_url(url))?;
        Some(hosting.sets()[set].iter().copied().collect())
    }

    fn name(text: &str, volumes: &[u32]) -> (Hosts, Volumes) {
        (Hosts::Name(text.into()), volumes.iter().copied().collect())
    }

    fn domain(text: &str, volumes: &[u32]) -> (Hosts, Volumes) {
        (
            Hosts::Domain(text.into()),
            volumes.iter().copied().collect(),
        )
    }

    #[test]
    fn a_host_goes_before_its_longest_domain_and_that_before_the_rest() {
        let rules = [
            name("www.a.example", &[1]),
            domain("a.example", &[2, 3]),
            domain("example", &[4]),
            name("[::1]", &[5]),
        ];
        let mut hosting = Hosting::new(&rules);
        for (url, volumes) in [
            ("http://www.a.example/x", vec![1]),
            ("http://WWW.A.example:8080/", vec![1]),
            ("https://a.example?q", vec![2, 3]),
            ("http://b.www.a.example/", vec![2, 3]),
            ("http://xa.example/", vec![4]),
            ("http://[::1]:80/", vec![5]),
            ("http://[::1]/", vec![5]),
        ] {
            assert_eq!(found(&hosting, url), Some(volumes), "{url}");
        }
        assert_eq!(found(&hosting, "http://other/"), None);
        hosting = Hosting::new(&[(Hosts::Any, [9].into())]);
        assert_eq!(found(&hosting, "http://other/"), Some(vec![9]));
    }

    #[test]
    fn an_alternate_goes_where_its_url_goes() {
        let hosting = Hosting::new(&[name("a", &[1])]);
        let alternate = CacheKey::of_url("http://a").alternate(1, b"gzip");
        assert_eq!(hosting.find(&alternate), Some(0));
    }

    #[test]
    fn a_digest_tells_other_rules_apart_but_not_their_order() {
        let (one, two) = (name("a", &[1]), name("b", &[1]));
        let digest = |rules: &[(Hosts, Volumes)]| Hosting::new(rules).digest();
        assert_eq!(digest(&[]), 0);
        assert_eq!(
            digest(&[one.clone(), two.clone()]),
            digest(&[two, one.clone()])
        );
        assert_ne!(digest(&[one]), digest(&[name("a", &[2])]));
    }
}
