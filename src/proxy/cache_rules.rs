//! The rules of cache.config, compiled, and what they make of the policy.

use crate::config::cache_rules::{CacheAction, CacheRule, CacheRulesFile, Destination, Narrowed};
use crate::http::policy::CachePolicy;
use crate::remap::TargetUrl;
use regex::Regex;
use std::cell::OnceCell;
use std::net::IpAddr;

/// What a request is judged by: the URL as the rules of remap.config made it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The method.
    pub method: &'a str,
    /// The client's address.
    pub client: IpAddr,
    /// Where the request goes.
    pub target: &'a TargetUrl,
}

/// Every rule, in the order of the lines.
#[derive(Debug, Default)]
pub struct CacheRules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    destination: Matcher,
    narrowed: Narrowed,
    action: CacheAction,
}

#[derive(Debug)]
enum Matcher {
    Domain(String),
    Host(String),
    HostRegex(Regex),
    UrlRegex(Regex),
}

/// A request, and its URL's text once a rule wants it.
struct Subject<'a> {
    asked: &'a Asked<'a>,
    path: &'a str,
    url: OnceCell<String>,
}

impl CacheRules {
    /// The rules of a file. The parser has compiled every pattern before; were
    /// one not to compile, its rule would hold for nothing.
    #[must_use]
    pub fn new(file: &CacheRulesFile) -> Self {
        Self {
            rules: file.rules.iter().filter_map(Rule::new).collect(),
        }
    }

    /// The policy for a request; `None` where no rule is for it.
    #[must_use]
    pub fn policy(&self, base: &CachePolicy, asked: &Asked<'_>) -> Option<CachePolicy> {
        let subject = Subject::of(asked);
        let mut rules = self.rules.iter().filter(|rule| rule.is_for(&subject));
        let mut policy = base.clone();
        rules.next()?.apply(&mut policy);
        rules.for_each(|rule| rule.apply(&mut policy));
        // A lifetime by rule goes before never-cache, wherever it stands.
        policy.enabled |= policy.ttl.is_some() && base.enabled;
        Some(policy)
    }
}

impl Rule {
    fn new(rule: &CacheRule) -> Option<Self> {
        let destination = match &rule.destination {
            Destination::Domain(name) => Matcher::Domain(name.clone()),
            Destination::Host(name) => Matcher::Host(name.clone()),
            Destination::HostRegex(pattern) => Matcher::HostRegex(Regex::new(pattern).ok()?),
            Destination::UrlRegex(pattern) => Matcher::UrlRegex(Regex::new(pattern).ok()?),
        };
        Some(Self {
            destination,
            narrowed: rule.narrowed.clone(),
            action: rule.action,
        })
    }

    fn is_for(&self, subject: &Subject<'_>) -> bool {
        narrowed_to(&self.narrowed, subject) && self.destination.takes(subject)
    }

    fn apply(&self, policy: &mut CachePolicy) {
        match self.action {
            CacheAction::NeverCache => policy.enabled = false,
            CacheAction::IgnoreNoCache => {
                policy.never_client_no_cache = true;
                policy.ignore_server_no_cache = true;
            }
            CacheAction::IgnoreClientNoCache => policy.never_client_no_cache = true,
            CacheAction::IgnoreServerNoCache => policy.ignore_server_no_cache = true,
            CacheAction::PinInCache(secs) => policy.pin = Some(secs),
            CacheAction::Revalidate(secs) => policy.revalidate_after = Some(secs),
            CacheAction::TtlInCache(secs) => policy.ttl = Some(secs),
            CacheAction::ResponsesToCookies(rule) => {
                policy.cookies = super::settings::cookie_rule(rule);
            }
        }
    }
}

impl Matcher {
    fn takes(&self, subject: &Subject<'_>) -> bool {
        let host = subject.host();
        match self {
            Self::Domain(domain) => is_within(host, domain),
            Self::Host(name) => host == name,
            Self::HostRegex(pattern) => pattern.is_match(host),
            Self::UrlRegex(pattern) => pattern.is_match(subject.url()),
        }
    }
}

impl<'a> Subject<'a> {
    fn of(asked: &'a Asked<'a>) -> Self {
        let whole = &*asked.target.path_and_query;
        let path = whole.split_once('?').map_or(whole, |(path, _)| path);
        Self {
            asked,
            path: path.strip_prefix('/').unwrap_or(path),
            url: OnceCell::new(),
        }
    }

    /// In lower case.
    fn host(&self) -> &str {
        &self.asked.target.host
    }

    fn url(&self) -> &str {
        self.url.get_or_init(|| self.asked.target.to_url())
    }
}

/// Whether the host is the domain, or below it.
fn is_within(host: &str, domain: &str) -> bool {
    let Some(above) = host.strip_suffix(domain) else {
        return false;
    };
    domain.is_empty() || above.is_empty() || above.ends_with('.')
}

fn narrowed_to(narrowed: &Narrowed, subject: &Subject<'_>) -> bool {
    let asked = subject.asked;
    let path = subject.path;
    narrowed.port.is_none_or(|port| port == asked.target.port)
        && narrowed
            .scheme
            .is_none_or(|scheme| scheme == asked.target.scheme)
        && narrowed
            .prefix
            .as_ref()
            .is_none_or(|prefix| path.starts_with(&**prefix))
        && narrowed
            .suffix
            .as_ref()
            .is_none_or(|suffix| path.ends_with(&**suffix))
        && narrowed
            .method
            .as_ref()
            .is_none_or(|method| method == asked.method)
        && narrowed
            .src_ip
            .is_none_or(|range| range.contains(asked.client))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::scheme::Scheme;
    use crate::config::cache_rules::parse;

    fn target(host: &str, port: u16, path: &str) -> TargetUrl {
        TargetUrl {
            scheme: Scheme::Http,
            host: host.into(),
            port,
            path_and_query: path.into(),
        }
    }

    fn policy(rules: &str, target: &TargetUrl) -> Option<CachePolicy> {
        let (file, found) = parse("cache.config", rules.as_bytes());
        assert_eq!(found.errors, []);
        let asked = Asked {
            method: "GET",
            client: "10.1.2.3".parse().unwrap(),
            target,
        };
        CacheRules::new(&file).policy(&CachePolicy::default(), &asked)
    }

    #[test]
    fn a_rule_is_for_what_all_its_words_take() {
        let url = target("img.a.test", 8080, "/pics/cat.gif?size=1");
        let rows = [
            ("dest_domain=a.test", true),
            ("dest_domain=img.a.test", true),
            ("dest_domain=.", true),
            ("dest_domain=test", true),
            ("dest_domain=g.a.test", false),
            ("dest_host=img.a.test", true),
            ("dest_host=a.test", false),
            ("host_regex=^img[.]", true),
            ("host_regex=^a", false),
            (
                "url_regex=^http://img.a.test:8080/pics/cat.gif[?]size=1$",
                true,
            ),
            ("url_regex=dog", false),
            ("dest_domain=a.test port=8080", true),
            ("dest_domain=a.test port=80", false),
            ("dest_domain=a.test scheme=http", true),
            ("dest_domain=a.test scheme=https", false),
            ("dest_domain=a.test prefix=pics/", true),
            ("dest_domain=a.test prefix=/pics", true),
            ("dest_domain=a.test prefix=cat", false),
            ("dest_domain=a.test suffix=gif", true),
            ("dest_domain=a.test suffix=size=1", false),
            ("dest_domain=a.test method=GET", true),
            ("dest_domain=a.test method=HEAD", false),
            ("dest_domain=a.test src_ip=10.0.0.0/8", true),
            ("dest_domain=a.test src_ip=127.0.0.1", false),
            ("dest_domain=a.test suffix=gif port=80", false),
        ];
        for (rule, expected) in rows {
            let rules = format!("{rule} ttl-in-cache=5");
            let ttl = policy(&rules, &url).and_then(|policy| policy.ttl);
            assert_eq!(ttl, expected.then_some(5), "{rule}");
        }
    }

    #[test]
    fn all_rules_that_match_count_and_the_later_wins() {
        let url = target("a.test", 80, "/a.jpg");
        let rules = "dest_domain=. ttl-in-cache=1\n\
                     dest_domain=. pin-in-cache=7\n\
                     dest_domain=a.test suffix=.jpg ttl-in-cache=2\n\
                     dest_domain=b.test ttl-in-cache=3\n\
                     dest_domain=a.test action=ignore-no-cache\n";
        let ruled = policy(rules, &url).unwrap();
        assert_eq!((ruled.ttl, ruled.pin), (Some(2), Some(7)));
        assert!(ruled.never_client_no_cache && ruled.ignore_server_no_cache);
        assert_eq!(policy("dest_domain=b.test ttl-in-cache=3", &url), None);
    }

    #[test]
    fn a_lifetime_by_rule_goes_before_never_cache() {
        let url = target("a.test", 80, "/");
        let never = "dest_domain=. action=never-cache\n";
        assert!(!policy(never, &url).unwrap().enabled);
        let ttl = "dest_domain=a.test ttl-in-cache=9\n";
        for rules in [format!("{never}{ttl}"), format!("{ttl}{never}")] {
            assert!(policy(&rules, &url).unwrap().enabled);
        }
    }
}
