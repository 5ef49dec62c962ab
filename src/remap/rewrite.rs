//! What a URL becomes under a rule.

use super::target::TargetUrl;
use crate::config::remap::{FromUrl, HostPart, Rule, ToUrl, is_host};
use crate::http::target::RequestUrl;
use regex::bytes::Regex;
use std::sync::Arc;

/// The URL that `rule` makes of `url`, which it takes. `pattern` is the
/// rule's compiled host pattern, if it has one. None if captures make a host
/// that is none, such as an empty one.
pub(super) fn target(rule: &Rule, pattern: Option<&Regex>, url: &RequestUrl) -> Option<TargetUrl> {
    Some(TargetUrl {
        scheme: rule.to.scheme,
        host: host(&rule.to.host, pattern, url.host())?,
        port: port(rule, url),
        path_and_query: path_and_query(&rule.from, &rule.to, url),
    })
}

fn host(parts: &[HostPart], pattern: Option<&Regex>, asked: &str) -> Option<Arc<str>> {
    if let [HostPart::Text(host)] = parts {
        return Some(Arc::clone(host));
    }
    let captures = pattern?.captures(asked.as_bytes())?;
    let mut host = String::with_capacity(asked.len());
    for part in parts {
        match part {
            HostPart::Text(text) => host.push_str(text),
            HostPart::Capture(group) => {
                // A group that took no part in the match is empty.
                let found = captures.get(usize::from(*group));
                let bytes = found.map_or(&[][..], |found| found.as_bytes());
                host.push_str(std::str::from_utf8(bytes).ok()?);
            }
        }
    }
    is_host(&host).then(|| host.into())
}

/// Where the client names the host and the rule no port, the client names
/// the port too. A port that only says "the default" stays the default.
fn port(rule: &Rule, url: &RequestUrl) -> u16 {
    let default = rule.to.scheme.default_port();
    let keeps = !rule.to.is_literal() && rule.from.port.is_none();
    let asked = url.port();
    let named = Some(asked).filter(|_| keeps && asked != url.scheme_kind().default_port());
    rule.to.port.or(named).unwrap_or(default)
}

fn path_and_query(from: &FromUrl, to: &ToUrl, url: &RequestUrl) -> String {
    let path = url.path();
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut text = String::with_capacity(to.path.len() + url.path_and_query().len() + 2);
    text.push('/');
    push_path(&mut text, path, from, to);
    if let Some(query) = url.query() {
        text.push('?');
        text.push_str(query);
    }
    text
}

/// TO's path and what is left of the request's, joined as ATS joins them: a
/// slash is put between only when FROM has no path, and one of two is left
/// out.
fn push_path(text: &mut String, path: &str, from: &FromUrl, to: &ToUrl) {
    let rest = path.strip_prefix(from.path.as_str()).unwrap_or_default();
    // A TO path that begins with a slash of its own loses it, as in ATS.
    text.push_str(to.path.strip_prefix('/').unwrap_or(&to.path));
    if to.path.is_empty() || to.path.ends_with('/') {
        text.push_str(rest.strip_prefix('/').unwrap_or(rest));
        return;
    }
    if from.path.is_empty() && !rest.is_empty() {
        text.push('/');
    }
    text.push_str(rest);
}
