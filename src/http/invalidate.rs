//! Which stored responses a request makes invalid (RFC 9111 4.4).

use super::target::RequestUrl;
use ::http::header::{CONTENT_LOCATION, HeaderName, LOCATION};
use ::http::{HeaderMap, Method, StatusCode};

/// Whether the method may change the resource: every method that is not known
/// to be safe (RFC 9110 9.2.1).
#[must_use]
pub fn is_unsafe(method: &Method) -> bool {
    let safe = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE];
    !safe.contains(method) && *method != Method::CONNECT
}

/// The URLs to remove from the cache after this exchange: none, or the effective
/// URL and those of Location and Content-Location that have its origin, since
/// others would let one site empty another's cache.
///
/// Only a 2xx or 3xx invalidates. The URLs are as the origin names them: they
/// are client URLs before rules are applied, like `url`.
#[must_use]
pub fn invalidated(
    method: &Method,
    url: &RequestUrl,
    status: StatusCode,
    response: &HeaderMap,
) -> Vec<RequestUrl> {
    if !is_unsafe(method) || !(status.is_success() || status.is_redirection()) {
        return Vec::new();
    }
    let mut urls = vec![url.clone()];
    for name in [LOCATION, CONTENT_LOCATION] {
        let named = named_url(response, &name, url);
        urls.extend(named.filter(|named| named.same_origin(url) && named != url));
    }
    urls
}

fn named_url(response: &HeaderMap, name: &HeaderName, base: &RequestUrl) -> Option<RequestUrl> {
    let value = response.get(name)?.to_str().ok()?;
    resolve(base, value.trim_matches([' ', '\t']))
}

/// Resolves a URL reference against `base` (RFC 3986 5.2), its fragment left
/// out; `None` when the result is no http or https URL.
#[must_use]
pub fn resolve(base: &RequestUrl, reference: &str) -> Option<RequestUrl> {
    let reference = reference.split('#').next().unwrap_or_default();
    if has_scheme(reference) {
        return RequestUrl::parse(reference).ok();
    }
    if reference.starts_with("//") {
        return RequestUrl::parse(&format!("{}:{reference}", base.scheme())).ok();
    }
    let target = match reference.chars().next() {
        None => base.path_and_query().to_owned(),
        Some('?') => format!("{}{reference}", base.path()),
        Some('/') => without_dots(reference),
        Some(_) => without_dots(&merged(base.path(), reference)),
    };
    RequestUrl::parse(&format!("{}://{}{target}", base.scheme(), base.authority())).ok()
}

/// Whether a colon comes before anything that ends a scheme.
fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?']);
    end.and_then(|at| reference.get(at..))
        .is_some_and(|rest| rest.starts_with(':'))
}

/// The reference in place of what follows the last `/` of the base's path.
fn merged(base: &str, reference: &str) -> String {
    let directory = base.rsplit_once('/').map_or("", |(directory, _)| directory);
    format!("{directory}/{reference}")
}

/// Removes `.` and `..` segments of the path (RFC 3986 5.2.4), not of the query.
fn without_dots(target: &str) -> String {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
        if is_last && (segment == "." || segment == "..") {
            kept.push("");
        }
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::HeaderValue;
    use proptest::prelude::*;

    fn url(text: &str) -> RequestUrl {
        RequestUrl::parse(text).unwrap()
    }

    fn after(method: Method, status: u16, lines: &[(&'static str, &str)]) -> Vec<String> {
        let mut response = HeaderMap::new();
        for (name, value) in lines {
            response.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let urls = invalidated(&method, &url("http://h/a/b?q"), status, &response);
        urls.iter().map(|url| url.as_str().to_owned()).collect()
    }

    #[test]
    fn unsafe_methods_that_succeed_invalidate_rfc_9111_4_4() {
        let own = ["http://h/a/b?q"];
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(after(method.clone(), 200, &[]), own);
            assert_eq!(after(method.clone(), 303, &[]), own);
            assert!(after(method.clone(), 404, &[]).is_empty());
            assert!(after(method, 500, &[]).is_empty());
        }
        for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
            assert!(after(method, 200, &[]).is_empty());
        }
    }

    #[test]
    fn locations_of_the_same_origin_are_invalidated_too() {
        let own = "http://h/a/b?q";
        let rows = [
            ("/c", Some("http://h/c")),
            ("c?x#f", Some("http://h/a/c?x")),
            ("HTTP://H:80/c", Some("http://h/c")),
            ("", None),
            ("https://h/c", None),
            ("http://h:81/c", None),
            ("//other/c", None),
            ("http://u@h/c", None),
            ("mailto:a", None),
        ];
        for (location, expected) in rows {
            let expected: Vec<&str> = [own].into_iter().chain(expected).collect();
            assert_eq!(
                after(Method::POST, 201, &[("location", location)]),
                expected,
                "{location}"
            );
            let content = [("content-location", location)];
            assert_eq!(after(Method::PUT, 200, &content), expected, "{location}");
        }
        let both = [("location", "/x"), ("content-location", "/y")];
        assert_eq!(
            after(Method::POST, 201, &both),
            [own, "http://h/x", "http://h/y"]
        );
    }

    #[test]
    fn references_resolve_rfc_3986_5_4() {
        let base = url("http://a/b/c/d;p?q");
        let rows = [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("http://x", "http://x/"),
            ("a/b:c", "http://a/b/c/a/b:c"),
        ];
        for (reference, expected) in rows {
            let resolved = resolve(&base, reference);
            assert_eq!(
                resolved.as_ref().map(RequestUrl::as_str),
                Some(expected),
                "{reference}"
            );
        }
        assert_eq!(resolve(&base, "ftp://a/"), None);
    }

    proptest! {
        #[test]
        fn any_reference_resolves_or_not(reference in "\\PC{0,20}|[a./:?#]{0,16}") {
            let base = url("http://a/b/c?d");
            if let Some(resolved) = resolve(&base, &reference) {
                prop_assert!(resolved.path().starts_with('/'));
            }
        }
    }
}
