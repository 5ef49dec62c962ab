//! Whether a stored response is acceptable to a request by what it negotiates
//! (RFC 9110 12.5), where records ask for that besides Vary.

use super::vary::{Vary, members, vary};
use ::http::header::{
    ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE,
    CONTENT_TYPE, HeaderName,
};
use ::http::{HeaderMap, HeaderValue};

/// When a response that a request does not accept is none for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mismatch {
    /// 0: always.
    Counts,
    /// 1: never, for Vary alone selects (RFC 9111 4.1).
    #[default]
    Ignored,
    /// 2: only where the response has Vary.
    CountsWithVary,
}

/// The records `http.cache.ignore_accept*_mismatch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Negotiation {
    /// Accept and the type of Content-Type.
    pub media: Mismatch,
    /// Accept-Charset and the charset of Content-Type.
    pub charset: Mismatch,
    /// Accept-Encoding and Content-Encoding.
    pub encoding: Mismatch,
    /// Accept-Language and Content-Language.
    pub language: Mismatch,
}

impl Negotiation {
    /// Whether Vary alone selects.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the response with these fields is acceptable to the request. A
    /// field that its Vary names has selected it already.
    #[must_use]
    pub fn accepts(&self, request: &HeaderMap, response: &HeaderMap) -> bool {
        let vary = vary(response);
        let judged = |mismatch, field| counts(mismatch, field, &vary);
        (!judged(self.media, &ACCEPT) || takes_type(request, response))
            && (!judged(self.charset, &ACCEPT_CHARSET) || takes_charset(request, response))
            && (!judged(self.encoding, &ACCEPT_ENCODING) || takes_encoding(request, response))
            && (!judged(self.language, &ACCEPT_LANGUAGE) || takes_language(request, response))
    }
}

fn counts(mismatch: Mismatch, field: &HeaderName, vary: &Vary) -> bool {
    let named = matches!(vary, Vary::Fields(fields) if fields.contains(field));
    match mismatch {
        Mismatch::Counts => !named,
        Mismatch::Ignored => false,
        Mismatch::CountsWithVary => !named && *vary != Vary::Nothing,
    }
}

/// RFC 9110 12.5.1: the most specific range counts.
fn takes_type(request: &HeaderMap, response: &HeaderMap) -> bool {
    let Some(content) = response.get(CONTENT_TYPE).map(text) else {
        return true;
    };
    let kind = content.split(';').next().unwrap_or_default().trim();
    let range = kind.split('/').next().map(|main| format!("{main}/*"));
    let ranges = [kind, range.as_deref().unwrap_or_default(), "*/*", "*"];
    takes(request, &ACCEPT, &ranges).unwrap_or(false)
}

/// RFC 9110 12.5.2; UTF-8 is taken by everybody, as in ATS.
fn takes_charset(request: &HeaderMap, response: &HeaderMap) -> bool {
    let Some(content) = response.get(CONTENT_TYPE).map(text) else {
        return true;
    };
    let mut parameters = content.split(';').skip(1);
    let charset = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        (name.trim() == "charset").then(|| value.trim().trim_matches('"').to_owned())
    });
    let charset = charset.unwrap_or_else(|| "utf-8".to_owned());
    let taken = takes(request, &ACCEPT_CHARSET, &[&charset, "*"]);
    taken.unwrap_or(charset == "utf-8")
}

/// RFC 9110 12.5.3, but that who names no coding takes none, as in ATS.
fn takes_encoding(request: &HeaderMap, response: &HeaderMap) -> bool {
    let codings = members(response, &CONTENT_ENCODING);
    let codings = codings.iter().map(|coding| coding.to_ascii_lowercase());
    let mut codings = codings.filter(|coding| coding != "identity").peekable();
    if codings.peek().is_none() {
        return takes(request, &ACCEPT_ENCODING, &["identity", "*"]).unwrap_or(true);
    }
    let is_taken = |coding: String| {
        let plain = coding.strip_prefix("x-").unwrap_or(&coding);
        let other = format!("x-{plain}");
        takes(request, &ACCEPT_ENCODING, &[plain, &other, "*"]).unwrap_or(false)
    };
    request.contains_key(ACCEPT_ENCODING) && codings.all(is_taken)
}

/// RFC 9110 12.5.4, RFC 4647 3.3.1: a range takes the tags that it begins; one
/// tag of several is enough.
fn takes_language(request: &HeaderMap, response: &HeaderMap) -> bool {
    let tags = members(response, &CONTENT_LANGUAGE);
    let is_taken = |tag: &String| {
        let tag = tag.to_ascii_lowercase();
        let ends = tag.match_indices('-').map(|(at, _)| at);
        let mut ranges: Vec<&str> = ends.filter_map(|end| tag.get(..end)).collect();
        ranges.push(&tag);
        ranges.reverse();
        ranges.push("*");
        takes(request, &ACCEPT_LANGUAGE, &ranges).unwrap_or(false)
    };
    tags.is_empty() || tags.iter().any(is_taken)
}

/// What a preference says of the first of `ranges` that it names; `None` if it
/// names none of them, and yes where it names nothing at all.
fn takes(request: &HeaderMap, field: &HeaderName, ranges: &[&str]) -> Option<bool> {
    let named: Vec<(String, bool)> = members(request, field)
        .iter()
        .map(|member| preference(member))
        .filter(|(range, _)| !range.is_empty())
        .collect();
    if named.is_empty() {
        return Some(true);
    }
    ranges.iter().find_map(|range| {
        let mut rows = named.iter().filter(|(name, _)| name == range).peekable();
        rows.peek()?;
        Some(rows.any(|(_, taken)| *taken))
    })
}

/// A range in lower case, and whether its weight is above 0. A weight that is
/// none is none.
fn preference(member: &str) -> (String, bool) {
    let mut parts = member.split(';');
    let range = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let weight = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_weight = name.trim().eq_ignore_ascii_case("q");
        is_weight
            .then(|| value.trim().parse::<f32>().ok())
            .flatten()
    });
    (range, weight.is_none_or(|weight| weight > 0.0))
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::headers;
    use proptest::prelude::*;

    const ALL: Negotiation = Negotiation {
        media: Mismatch::Counts,
        charset: Mismatch::Counts,
        encoding: Mismatch::Counts,
        language: Mismatch::Counts,
    };

    fn accepts(request: &[(&str, &str)], response: &[(&str, &str)]) -> bool {
        ALL.accepts(&headers(request), &headers(response))
    }

    #[test]
    fn the_most_specific_media_range_counts_rfc_9110_12_5_1() {
        let html = ("content-type", "Text/HTML; charset=utf-8");
        for (accept, taken) in [
            ("text/html", true),
            ("TEXT/html;q=0.1", true),
            ("text/html;q=0, */*", false),
            ("text/*;q=0, */*", false),
            ("text/*", true),
            ("image/png, */*;q=0.1", true),
            ("image/png", false),
            ("text/htm", false),
            ("", true),
            (" , ,", true),
            ("text/html;level=1;q=0", false),
            ("text/html;q=x", true),
        ] {
            assert_eq!(accepts(&[("accept", accept)], &[html]), taken, "{accept}");
        }
        assert!(accepts(&[], &[html]) && accepts(&[("accept", "image/png")], &[]));
    }

    #[test]
    fn utf_8_is_taken_by_all_and_another_charset_by_who_names_it_rfc_9110_12_5_2() {
        for (charsets, content, taken) in [
            ("koi8-r", "text/html", true),
            ("koi8-r", "text/html; charset=utf-8", true),
            ("koi8-r", "text/html; Charset=\"KOI8-R\"", true),
            ("utf-8", "text/html; charset=koi8-r", false),
            ("utf-8, *", "text/html; charset=koi8-r", true),
            ("koi8-r;q=0, *", "text/html; charset=koi8-r", false),
        ] {
            let request = [("accept-charset", charsets)];
            let response = [("content-type", content)];
            assert_eq!(accepts(&request, &response), taken, "{charsets} {content}");
        }
    }

    #[test]
    fn every_coding_must_be_taken_and_identity_unless_it_is_refused_rfc_9110_12_5_3() {
        for (taken_codings, codings, taken) in [
            ("gzip", "gzip", true),
            ("gzip", "x-gzip", true),
            ("X-GZIP", "gzip", true),
            ("gzip", "br", false),
            ("gzip, br", "gzip, br", true),
            ("gzip", "gzip, br", false),
            ("*", "br", true),
            ("gzip", "", true),
            ("identity;q=0, gzip", "", false),
            ("*;q=0", "identity", false),
        ] {
            let request = [("accept-encoding", taken_codings)];
            let response = [("content-encoding", codings)];
            assert_eq!(
                accepts(&request, &response),
                taken,
                "{taken_codings} {codings}"
            );
        }
        assert!(!accepts(&[], &[("content-encoding", "gzip")]));
        assert!(accepts(&[], &[]));
    }

    #[test]
    fn a_language_range_takes_the_tags_that_it_begins_rfc_4647_3_3_1() {
        for (ranges, tags, taken) in [
            ("de", "de", true),
            ("de", "de-CH", true),
            ("de-ch", "de", false),
            ("en", "eng", false),
            ("en, *;q=0.1", "fr", true),
            ("en", "fr, en-gb", true),
            ("en-gb;q=0, en", "en-GB", false),
            ("en", "", true),
        ] {
            let request = [("accept-language", ranges)];
            let response = [("content-language", tags)];
            assert_eq!(accepts(&request, &response), taken, "{ranges} {tags}");
        }
    }

    #[test]
    fn a_mismatch_counts_as_the_record_says_and_not_where_vary_names_the_field() {
        let request = headers(&[("accept", "image/png")]);
        let html = ("content-type", "text/html");
        let responses = [
            headers(&[html]),
            headers(&[html, ("vary", "x")]),
            headers(&[html, ("vary", "x, accept")]),
        ];
        for (media, taken) in [
            (Mismatch::Counts, [false, false, true]),
            (Mismatch::Ignored, [true, true, true]),
            (Mismatch::CountsWithVary, [true, false, true]),
        ] {
            let rules = Negotiation {
                media,
                ..Negotiation::default()
            };
            let seen = responses
                .each_ref()
                .map(|response| rules.accepts(&request, response));
            assert_eq!(seen, taken, "{media:?}");
        }
    }

    proptest! {
        #[test]
        fn any_values_are_judged(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let names = [ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE,
                    CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE];
                let map: HeaderMap = names.into_iter().map(|name| (name, value.clone())).collect();
                prop_assert!(Negotiation::default().accepts(&map, &map));
                prop_assert_eq!(ALL.accepts(&map, &map), ALL.accepts(&map.clone(), &map));
            }
        }
    }
}
