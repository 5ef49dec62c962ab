//! Cache-Control of requests and of responses (RFC 9111 5.2), and Pragma.
//!
//! Field lines are combined. Names match in any case; an argument may be a
//! token or a quoted string. When a directive comes twice, the first counts
//! (4.2.1). A lifetime whose argument is no number counts as 0, so that the
//! response is stale (4.2.1); any other bad argument disables its directive
//! when it grants something, and widens it when it forbids something.

use ::http::header::{CACHE_CONTROL, PRAGMA};
use ::http::{HeaderMap, HeaderName, HeaderValue};

/// The largest delta-seconds (RFC 9111 1.2.2): 2^31.
pub const MAX_DELTA: u64 = 1 << 31;

/// Whether no-cache or private applies, and to what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The directive is absent.
    #[default]
    Absent,
    /// It holds for these fields of the response only.
    Fields(Vec<HeaderName>),
    /// It holds for the whole response.
    Whole,
}

impl Scope {
    /// Whether the directive holds for the whole response.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        *self == Self::Whole
    }

    /// The fields that it names; empty for another scope.
    #[must_use]
    pub fn fields(&self) -> &[HeaderName] {
        match self {
            Self::Fields(names) => names,
            Self::Absent | Self::Whole => &[],
        }
    }

    fn add(&mut self, more: &Self) {
        match (&mut *self, more) {
            (Self::Whole, _) | (_, Self::Absent) => {}
            (Self::Fields(names), Self::Fields(more)) => names.extend_from_slice(more),
            (Self::Absent, _) | (_, Self::Whole) => self.clone_from(more),
        }
    }

    pub(super) fn widen(&mut self, argument: Option<&str>) {
        let named = argument.and_then(field_names);
        match (&mut *self, named) {
            (Self::Whole, _) => {}
            (Self::Fields(names), Some(more)) => names.extend(more),
            (Self::Absent, Some(names)) => *self = Self::Fields(names),
            (_, None) => *self = Self::Whole,
        }
    }
}

/// The directives of a response (RFC 9111 5.2.2, 5861, 8246). Times are in
/// seconds, at most [`MAX_DELTA`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// no-store.
    pub no_store: bool,
    /// no-cache, perhaps for some fields only.
    pub no_cache: Scope,
    /// private, perhaps for some fields only.
    pub private: Scope,
    /// public.
    pub public: bool,
    /// must-revalidate.
    pub must_revalidate: bool,
    /// proxy-revalidate.
    pub proxy_revalidate: bool,
    /// must-understand.
    pub must_understand: bool,
    /// no-transform.
    pub no_transform: bool,
    /// immutable (RFC 8246).
    pub immutable: bool,
    /// max-age.
    pub max_age: Option<u64>,
    /// s-maxage.
    pub s_maxage: Option<u64>,
    /// stale-while-revalidate (RFC 5861 3).
    pub stale_while_revalidate: Option<u64>,
    /// stale-if-error (RFC 5861 4).
    pub stale_if_error: Option<u64>,
    /// A targeted field said all this, so that Expires says nothing
    /// (RFC 9213 2.2).
    pub is_targeted: bool,
}

impl ResponseDirectives {
    /// Reads Cache-Control.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut read = Self::default();
        for_each_directive(headers, |name, argument| read.take(name, argument));
        read
    }

    /// Adds what `other` forbids, and nothing that it grants.
    pub(super) fn forbid(&mut self, other: &Self) {
        self.no_store |= other.no_store;
        // It would undo the other's no-store (RFC 9111 5.2.2.3).
        self.must_understand &= !other.no_store;
        self.no_cache.add(&other.no_cache);
        self.private.add(&other.private);
        self.must_revalidate |= other.must_revalidate;
        self.proxy_revalidate |= other.proxy_revalidate;
        self.no_transform |= other.no_transform;
    }

    fn take(&mut self, name: &str, argument: Option<&str>) {
        match name {
            "no-store" => self.no_store = true,
            "no-cache" => self.no_cache.widen(argument),
            "private" => self.private.widen(argument),
            "public" => self.public = true,
            "must-revalidate" => self.must_revalidate = true,
            "proxy-revalidate" => self.proxy_revalidate = true,
            "must-understand" => self.must_understand = true,
            "no-transform" => self.no_transform = true,
            "immutable" => self.immutable = true,
            "max-age" => first(&mut self.max_age, lifetime(argument)),
            "s-maxage" => first(&mut self.s_maxage, lifetime(argument)),
            "stale-while-revalidate" => {
                first(&mut self.stale_while_revalidate, lifetime(argument));
            }
            "stale-if-error" => first(&mut self.stale_if_error, lifetime(argument)),
            _ => {}
        }
    }
}

/// How much staleness a request takes (RFC 9111 5.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxStale {
    /// Any.
    Any,
    /// At most this many seconds past the lifetime.
    Within(u64),
}

/// The directives of a request (RFC 9111 5.2.1, RFC 5861 4). Times are in
/// seconds, at most [`MAX_DELTA`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// no-cache; or Pragma: no-cache in a request without Cache-Control (5.4).
    pub no_cache: bool,
    /// no-store.
    pub no_store: bool,
    /// no-transform.
    pub no_transform: bool,
    /// only-if-cached.
    pub only_if_cached: bool,
    /// max-age.
    pub max_age: Option<u64>,
    /// min-fresh.
    pub min_fresh: Option<u64>,
    /// max-stale.
    pub max_stale: Option<MaxStale>,
    /// stale-if-error.
    pub stale_if_error: Option<u64>,
}

impl RequestDirectives {
    /// Reads Cache-Control, or Pragma when there is none.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut read = Self::default();
        if headers.contains_key(CACHE_CONTROL) {
            for_each_directive(headers, |name, argument| read.take(name, argument));
        } else {
            read.no_cache = pragma_no_cache(headers);
        }
        read
    }

    fn take(&mut self, name: &str, argument: Option<&str>) {
        match name {
            "no-cache" => self.no_cache = true,
            "no-store" => self.no_store = true,
            "no-transform" => self.no_transform = true,
            "only-if-cached" => self.only_if_cached = true,
            "max-age" => first(&mut self.max_age, lifetime(argument)),
            "min-fresh" => first(&mut self.min_fresh, argument.and_then(delta_seconds)),
            "max-stale" => first(&mut self.max_stale, max_stale(argument)),
            "stale-if-error" => first(&mut self.stale_if_error, lifetime(argument)),
            _ => {}
        }
    }
}

/// Takes the directives of these names off a request's Cache-Control. What is
/// left of it becomes one line, or none.
pub fn remove_directives(headers: &mut HeaderMap, names: &[&str]) {
    let lines = headers.get_all(CACHE_CONTROL).iter();
    let text = lines.map(|line| String::from_utf8_lossy(line.as_bytes()));
    let text = text.collect::<Vec<_>>().join(", ");
    let name = |element: &str| {
        let (name, _) = element.split_once('=').unwrap_or((element, ""));
        name.trim_end().to_ascii_lowercase()
    };
    let (taken, kept): (Vec<_>, Vec<_>) =
        split_list(&text).partition(|element| names.contains(&&*name(element)));
    if taken.is_empty() {
        return;
    }
    headers.remove(CACHE_CONTROL);
    let value = HeaderValue::from_bytes(kept.join(", ").as_bytes());
    if let (false, Ok(value)) = (kept.is_empty(), value) {
        headers.insert(CACHE_CONTROL, value);
    }
}

/// Reads delta-seconds (RFC 9111 1.2.2): digits only, at most [`MAX_DELTA`],
/// to which a larger number is lowered.
#[must_use]
pub fn delta_seconds(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Only overflow can fail on digits.
    Some(
        text.parse()
            .map_or(MAX_DELTA, |secs: u64| secs.min(MAX_DELTA)),
    )
}

fn first<T>(slot: &mut Option<T>, value: Option<T>) {
    if slot.is_none() {
        *slot = value;
    }
}

fn lifetime(argument: Option<&str>) -> Option<u64> {
    Some(argument.and_then(delta_seconds).unwrap_or(0))
}

fn max_stale(argument: Option<&str>) -> Option<MaxStale> {
    match argument {
        None => Some(MaxStale::Any),
        Some(text) => delta_seconds(text).map(MaxStale::Within),
    }
}

/// `None` unless the argument is a list of at least one field name.
fn field_names(argument: &str) -> Option<Vec<HeaderName>> {
    let names = argument.split(',').map(str::trim).filter(|n| !n.is_empty());
    let names: Result<Vec<HeaderName>, _> = names.map(|name| name.parse()).collect();
    names.ok().filter(|names| !names.is_empty())
}

fn pragma_no_cache(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(PRAGMA).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|b| *b == b','))
        .any(|directive| directive.trim_ascii().eq_ignore_ascii_case(b"no-cache"))
}

/// Calls `take` with each directive's name in lower case and its argument,
/// unquoted.
fn for_each_directive(headers: &HeaderMap, mut take: impl FnMut(&str, Option<&str>)) {
    for line in headers.get_all(CACHE_CONTROL) {
        let text = String::from_utf8_lossy(line.as_bytes());
        for element in split_list(&text) {
            let (name, argument) = match element.split_once('=') {
                Some((name, argument)) => (name, Some(argument)),
                None => (element, None),
            };
            let argument = argument.map(unquote);
            // `max-age =1` is no directive; take it for one with a bad argument.
            match name.strip_suffix([' ', '\t']) {
                Some(name) => take(&name.trim_end().to_ascii_lowercase(), Some("")),
                None => take(&name.to_ascii_lowercase(), argument.as_deref()),
            }
        }
    }
}

/// The non-empty elements of a list, split at commas outside quotes. A quote
/// that is never closed quotes nothing, lest it hide what follows.
pub(super) fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (element, after) = split_element(rest?);
        rest = after;
        Some(element.trim_matches([' ', '\t']))
    })
    .filter(|element| !element.is_empty())
}

fn split_element(text: &str) -> (&str, Option<&str>) {
    let mut from = 0;
    loop {
        let Some(found) = text.get(from..).and_then(|rest| rest.find([',', '"'])) else {
            return (text, None);
        };
        let at = from + found;
        let (before, rest) = text.split_at(at);
        if let Some(after) = rest.strip_prefix(',') {
            return (before, Some(after));
        }
        from = at + quoted_len(rest).unwrap_or(1);
    }
}

/// The length of the quoted string that `text` begins with, its quotes
/// included; `None` when it does not end.
fn quoted_len(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some(at + 1),
            b'\\' => {
                bytes.next()?;
            }
            _ => {}
        }
    }
    None
}

fn unquote(argument: &str) -> String {
    let inner = argument.strip_prefix('"').and_then(|a| a.strip_suffix('"'));
    let Some(inner) = inner else {
        return argument.to_owned();
    };
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let c = if c == '\\' { chars.next() } else { Some(c) };
        out.extend(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::HeaderValue;
    use proptest::prelude::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for line in lines {
            map.append(
                CACHE_CONTROL,
                HeaderValue::from_bytes(line.as_bytes()).unwrap(),
            );
        }
        map
    }

    fn response(lines: &[&str]) -> ResponseDirectives {
        ResponseDirectives::of(&headers(lines))
    }

    fn request(line: &str) -> RequestDirectives {
        RequestDirectives::of(&headers(&[line]))
    }

    #[test]
    fn every_response_directive_is_read_in_any_case_rfc_9111_5_2_2() {
        let read = response(&[
            "No-Store, PUBLIC,must-revalidate ,proxy-revalidate",
            "must-understand, no-transform, immutable, max-age=1, S-MaxAge=\"2\"",
            "stale-while-revalidate=3, stale-if-error=4, no-cache, private",
        ]);
        let all = ResponseDirectives {
            no_store: true,
            no_cache: Scope::Whole,
            private: Scope::Whole,
            public: true,
            must_revalidate: true,
            proxy_revalidate: true,
            must_understand: true,
            no_transform: true,
            immutable: true,
            max_age: Some(1),
            s_maxage: Some(2),
            stale_while_revalidate: Some(3),
            stale_if_error: Some(4),
            is_targeted: false,
        };
        assert_eq!(read, all);
    }

    #[test]
    fn lifetimes_with_hostile_arguments_rfc_9111_1_2_2_and_4_2_1() {
        let rows = [
            ("max-age=0", 0),
            ("max-age=007", 7),
            ("max-age=\"60\"", 60),
            ("max-age=-1", 0),
            ("max-age=1.5", 0),
            ("max-age=+60", 0),
            ("max-age=60s", 0),
            ("max-age=", 0),
            ("max-age", 0),
            ("max-age =60", 0),
            ("max-age= 60", 0),
            ("max-age='60'", 0),
            ("max-age=2147483648", MAX_DELTA),
            ("max-age=99999999999999999999", MAX_DELTA),
            ("max-age=60, max-age=0", 60),
            ("max-age=0, max-age=60", 0),
            ("max-age=60;public", 0),
            ("max-age=\"60", 0),
            ("max-age=60\"", 0),
        ];
        for (line, secs) in rows {
            assert_eq!(response(&[line]).max_age, Some(secs), "{line}");
        }
        for line in [
            "xmax-age=60",
            "max-agex=60",
            "x=\"max-age=60\"",
            "\"max-age=60\"",
            "",
        ] {
            assert_eq!(response(&[line]).max_age, None, "{line}");
        }
    }

    #[test]
    fn no_cache_and_private_may_name_fields() {
        let names = |names: &[&'static str]| {
            Scope::Fields(names.iter().map(|n| HeaderName::from_static(n)).collect())
        };
        let rows = [
            ("private=\"Set-Cookie, X-A\"", names(&["set-cookie", "x-a"])),
            ("private=x-a", names(&["x-a"])),
            ("private=\"x-a\", private=\"x-b\"", names(&["x-a", "x-b"])),
            ("private=\"x-a\", private", Scope::Whole),
            ("private, private=\"x-a\"", Scope::Whole),
            ("private=\"\"", Scope::Whole),
            ("private=", Scope::Whole),
            ("private=\"a b\"", Scope::Whole),
            ("x=\"private\"", Scope::Absent),
        ];
        for (line, scope) in rows {
            assert_eq!(response(&[line]).private, scope, "{line}");
            let no_cache = line.replace("private", "no-cache");
            assert_eq!(response(&[&no_cache]).no_cache, scope, "{no_cache}");
        }
    }

    #[test]
    fn an_open_quote_hides_nothing() {
        let read = response(&["x=\"a, no-store, max-age=5"]);
        assert!(read.no_store);
        let closed = response(&["x=\"a, no-store\\\", private\", max-age=5"]);
        assert!(!closed.no_store);
        assert_eq!(closed.private, Scope::Absent);
        assert_eq!(closed.max_age, Some(5));
    }

    #[test]
    fn every_request_directive_is_read_rfc_9111_5_2_1() {
        let read = request(
            "no-cache, no-store, no-transform, only-if-cached, max-age=1, min-fresh=2, \
             max-stale=3, stale-if-error=4",
        );
        let all = RequestDirectives {
            no_cache: true,
            no_store: true,
            no_transform: true,
            only_if_cached: true,
            max_age: Some(1),
            min_fresh: Some(2),
            max_stale: Some(MaxStale::Within(3)),
            stale_if_error: Some(4),
        };
        assert_eq!(read, all);
        assert_eq!(request("max-stale").max_stale, Some(MaxStale::Any));
        assert_eq!(request("max-stale=x").max_stale, None);
        assert_eq!(request("min-fresh=x").min_fresh, None);
        assert_eq!(request("max-age=x").max_age, Some(0));
    }

    #[test]
    fn pragma_counts_only_without_cache_control_rfc_9111_5_4() {
        let mut map = HeaderMap::new();
        map.append(PRAGMA, HeaderValue::from_static("x, No-Cache"));
        assert!(RequestDirectives::of(&map).no_cache);
        map.append(CACHE_CONTROL, HeaderValue::from_static("max-age=5"));
        assert!(!RequestDirectives::of(&map).no_cache);
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in "[a-z=,\" \\\\0-9\\-]{0,40}") {
            let read = response(&[&value]);
            prop_assert!(read.max_age.is_none_or(|secs| secs <= MAX_DELTA));
            prop_assert!(split_list(&value).all(|element| !element.is_empty()));
        }

        #[test]
        fn no_store_is_seen_wherever_it_stands_alone(
            before in "[a-z=,\" ]{0,20}", after in "[a-z=, ]{0,20}",
        ) {
            let value = format!("{},no-store,{after}", before.replace('"', "'"));
            prop_assert!(response(&[&value]).no_store);
        }
    }
}
