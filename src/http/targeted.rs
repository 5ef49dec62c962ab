//! Targeted cache control (RFC 9213): fields that speak to caches like this one
//! in place of Cache-Control and Expires.
//!
//! Such a field is a structured dictionary (RFC 9651). One that is none, is
//! empty, or gives a directive a value of another type is passed over for the
//! next, and at last for Cache-Control: its sender's mistake, which the general
//! field covers. What a dictionary forbids counts all the same, its sender not
//! having meant less. A member's parameters and members without a meaning here
//! are ignored.

use super::cache_control::{MAX_DELTA, ResponseDirectives, Scope};
use ::http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{BareItem, Dictionary, ListEntry, Parser, StringRef, TokenRef};

/// The directives of a response: those of the first of `fields` that holds, else
/// those of Cache-Control (RFC 9213 2.2).
#[must_use]
pub fn directives(headers: &HeaderMap, fields: &[HeaderName]) -> ResponseDirectives {
    let mut forbidden = Vec::new();
    let targeted = fields.iter().filter_map(|name| read(headers, name));
    let mut holding = targeted.filter_map(|read| read.map_err(|bad| forbidden.push(bad)).ok());
    let first = holding.next();
    drop(holding);
    let mut counted = first.unwrap_or_else(|| ResponseDirectives::of(headers));
    forbidden.iter().for_each(|bad| counted.forbid(bad));
    counted
}

/// `None` for no dictionary, or an empty one; all lines of the field are one.
///
/// # Errors
/// What is said beside a value of another type, of which only what forbids
/// counts.
fn read(
    headers: &HeaderMap,
    name: &HeaderName,
) -> Option<Result<ResponseDirectives, ResponseDirectives>> {
    let lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let text = lines.collect::<Vec<_>>().join(&b", "[..]);
    let members: Dictionary = Parser::new(&text).parse().ok()?;
    if members.is_empty() {
        return None;
    }
    let mut read = ResponseDirectives {
        is_targeted: true,
        ..ResponseDirectives::default()
    };
    let mut is_good = true;
    for (name, value) in &members {
        if take(&mut read, name.as_str(), value).is_none() {
            is_good = false;
            forbid(&mut read, name.as_str());
        }
    }
    Some(if is_good { Ok(read) } else { Err(read) })
}

/// A directive that forbids does so whatever its value is.
fn forbid(read: &mut ResponseDirectives, name: &str) {
    match name {
        "no-store" => read.no_store = true,
        "no-cache" => read.no_cache = Scope::Whole,
        "private" => read.private = Scope::Whole,
        "must-revalidate" => read.must_revalidate = true,
        "proxy-revalidate" => read.proxy_revalidate = true,
        "no-transform" => read.no_transform = true,
        _ => {}
    }
}

/// `None` when the directive's value is of another type.
fn take(read: &mut ResponseDirectives, name: &str, value: &ListEntry) -> Option<()> {
    match name {
        "no-store" => read.no_store = flag(value)?,
        "no-cache" => read.no_cache = scope(value)?,
        "private" => read.private = scope(value)?,
        "public" => read.public = flag(value)?,
        "must-revalidate" => read.must_revalidate = flag(value)?,
        "proxy-revalidate" => read.proxy_revalidate = flag(value)?,
        "must-understand" => read.must_understand = flag(value)?,
        "no-transform" => read.no_transform = flag(value)?,
        "immutable" => read.immutable = flag(value)?,
        "max-age" => read.max_age = Some(seconds(value)?),
        "s-maxage" => read.s_maxage = Some(seconds(value)?),
        "stale-while-revalidate" => read.stale_while_revalidate = Some(seconds(value)?),
        "stale-if-error" => read.stale_if_error = Some(seconds(value)?),
        _ => {}
    }
    Some(())
}

fn item(value: &ListEntry) -> Option<&BareItem> {
    match value {
        ListEntry::Item(item) => Some(&item.bare_item),
        ListEntry::InnerList(_) => None,
    }
}

fn flag(value: &ListEntry) -> Option<bool> {
    item(value)?.as_boolean()
}

/// A negative number of seconds is none.
fn seconds(value: &ListEntry) -> Option<u64> {
    let secs = i64::from(item(value)?.as_integer()?);
    Some(u64::try_from(secs).unwrap_or(0).min(MAX_DELTA))
}

fn scope(value: &ListEntry) -> Option<Scope> {
    let value = item(value)?;
    let names = value.as_string().map(StringRef::as_str);
    let names = names.or_else(|| value.as_token().map(TokenRef::as_str));
    let mut scope = Scope::Absent;
    if names.is_some() || value.as_boolean()? {
        scope.widen(names);
    }
    Some(scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::headers;
    use proptest::prelude::*;

    const CDN: HeaderName = HeaderName::from_static("cdn-cache-control");
    const OWN: HeaderName = HeaderName::from_static("own-cache-control");

    fn of(lines: &[(&str, &str)]) -> ResponseDirectives {
        directives(&headers(lines), &[OWN, CDN])
    }

    /// What is said beside `Cache-Control: max-age=7`.
    fn beside(value: &str) -> ResponseDirectives {
        of(&[("cdn-cache-control", value), ("cache-control", "max-age=7")])
    }

    #[test]
    fn every_directive_is_read_by_its_type_rfc_9213_2_1() {
        let read = beside(
            "no-store, no-cache=\"a, b\", private, public, must-revalidate;x=1, \
             proxy-revalidate=?1, must-understand, no-transform, immutable, max-age=1, \
             s-maxage=2, stale-while-revalidate=3, stale-if-error=4, foo=(1 2)",
        );
        let named = ["a", "b"].map(HeaderName::from_static);
        let all = ResponseDirectives {
            no_store: true,
            no_cache: Scope::Fields(named.into()),
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
            is_targeted: true,
        };
        assert_eq!(read, all);
    }

    #[test]
    fn a_field_that_holds_takes_the_place_of_cache_control_rfc_9213_2_2() {
        let rows = [
            ("max-age=60", Some(60)),
            ("max-age=0", Some(0)),
            ("max-age=-5", Some(0)),
            ("max-age=99999999999", Some(MAX_DELTA)),
            ("max-age=1, max-age=60", Some(60)),
            ("max-age=60;a=b", Some(60)),
            ("foo", None),
            ("no-store=?0", None),
        ];
        for (value, max_age) in rows {
            let read = beside(value);
            assert_eq!((read.max_age, read.is_targeted), (max_age, true), "{value}");
            assert!(!read.no_store, "{value}");
        }
    }

    #[test]
    fn a_field_that_does_not_hold_is_passed_over_rfc_9213_2_2() {
        let values = [
            "",
            "   ",
            "max-age=60, &&&&&",
            "max-age=\"60\"",
            "max-age",
            "max-age=1.5",
            "max-age=60s",
            "max-age =60",
            "max-age= 60",
            "max-age=9999999999999999",
            "max-age=(60)",
            "MaX-aGe=60",
            "no-store=1",
            "no-store=\"x\"",
            "private=1",
            "no-cache=(a)",
            "max-age=60,",
            "max-age=\"60",
        ];
        for value in values {
            let read = beside(value);
            assert_eq!(
                (read.max_age, read.is_targeted),
                (Some(7), false),
                "{value}"
            );
        }
    }

    #[test]
    fn what_a_field_forbids_counts_though_another_of_its_directives_is_bad() {
        let whole = |scope: &Scope| scope.is_whole();
        for value in [
            "no-store, max-age=x",
            "max-age=\"9\", no-store",
            "no-store=1",
            "no-store=?1, s-maxage=1.5",
        ] {
            let read = beside(value);
            assert_eq!((read.no_store, read.max_age), (true, Some(7)), "{value}");
        }
        for value in ["private, s-maxage=1.5", "private=1", "private=(a)"] {
            assert!(whole(&beside(value).private), "{value}");
        }
        for value in ["no-cache, max-age=x", "no-cache=1"] {
            assert!(whole(&beside(value).no_cache), "{value}");
        }
        let named = beside("private=\"x-a\", max-age=x").private;
        assert_eq!(named.fields(), ["x-a"]);
        for value in ["must-revalidate, max-age=x", "proxy-revalidate, max-age=x"] {
            let read = beside(value);
            assert!(read.must_revalidate || read.proxy_revalidate, "{value}");
        }
        let granted = beside("public, immutable, stale-if-error=9, max-age=x");
        let none = (false, false, None);
        assert_eq!(
            (granted.public, granted.immutable, granted.stale_if_error),
            none
        );
        assert!(!beside("no-store=?0, max-age=x").no_store);
        assert!(!beside("no-store, max-age=x;;(").no_store, "no dictionary");
    }

    #[test]
    fn the_first_field_of_the_list_that_holds_counts() {
        let both = |own| {
            let lines = [
                ("cdn-cache-control", "max-age=1"),
                ("own-cache-control", own),
                ("cache-control", "max-age=7"),
            ];
            of(&lines).max_age
        };
        assert_eq!(both("max-age=2"), Some(2));
        assert_eq!(both("max-age=x"), Some(1));
        let lines = [
            ("cdn-cache-control", "max-age=1"),
            ("cdn-cache-control", "no-store"),
        ];
        assert_eq!((of(&lines).max_age, of(&lines).no_store), (Some(1), true));
        let none = directives(&headers(&lines), &[]);
        assert_eq!(none, ResponseDirectives::default());
    }

    proptest! {
        #[test]
        fn any_value_is_read_or_passed_over(value in "[a-z=, ?();\"0-9.-]{0,40}") {
            let read = beside(&value);
            prop_assert!(read.is_targeted || read.max_age == Some(7));
        }
    }
}
