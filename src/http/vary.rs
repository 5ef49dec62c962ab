//! Which requests a stored response may answer: Vary and the values it selects
//! by (RFC 9111 4.1).

use super::cache_control::split_list;
use super::forwarding::{CLIENT_IP, X_FORWARDED_FOR};
use super::policy::NormalizeAcceptEncoding;
use ::http::HeaderMap;
use ::http::header::{
    ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, FORWARDED, HeaderName, HeaderValue,
    VARY, VIA,
};

/// What Vary says, all its lines together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vary {
    /// Nothing: one response serves all requests.
    Nothing,
    /// The request's values of these fields select the response; sorted, each
    /// once.
    Fields(Vec<HeaderName>),
    /// `*`, a member that is no field name, or a field whose value the origin
    /// has from this proxy: no other request matches.
    Star,
}

/// Request fields in which the origin sees what the proxy adds of its own, such
/// as the client's address: the client's values tell nothing of what selected.
const OURS: [HeaderName; 4] = [CLIENT_IP, FORWARDED, VIA, X_FORWARDED_FOR];

/// Reads Vary of a response.
#[must_use]
pub fn vary(headers: &HeaderMap) -> Vary {
    let mut names = Vec::new();
    for member in members(headers, &VARY) {
        match member.parse::<HeaderName>() {
            Ok(name) if member != "*" && !OURS.contains(&name) => names.push(name),
            _ => return Vary::Star,
        }
    }
    names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    if names.is_empty() {
        Vary::Nothing
    } else {
        Vary::Fields(names)
    }
}

/// The values by which `fields` select a response for this request: equal bytes
/// mean the same selection.
///
/// Lines of one field are combined (RFC 9110 5.3). Of the lists that Accept and
/// its kin are, whitespace around members is taken off and empty members are
/// dropped; names of languages, charsets and codings are in lower case. Of other
/// fields every byte counts. An absent field differs from an empty one.
/// Normalise Accept-Encoding before ([`normalize_accept_encoding`]).
#[must_use]
pub fn selected(fields: &[HeaderName], request: &HeaderMap) -> Vec<u8> {
    let mut out = Vec::new();
    for name in fields {
        out.extend_from_slice(name.as_str().as_bytes());
        if request.contains_key(name) {
            out.push(b':');
            push_value(&mut out, request, name);
        }
        // No field value holds a line feed.
        out.push(b'\n');
    }
    out
}

/// Rewrites Accept-Encoding of a request as the rule says, so that requests
/// which can take the same response select the same one.
///
/// A coding counts as accepted when it is listed with a weight above 0, or not
/// listed while `*` is. Malformed members are ignored: a field that holds
/// nothing else means identity, and is removed.
pub fn normalize_accept_encoding(request: &mut HeaderMap, rule: NormalizeAcceptEncoding) {
    if rule == NormalizeAcceptEncoding::Verbatim || !request.contains_key(ACCEPT_ENCODING) {
        return;
    }
    let accepted = Accepted::of(request);
    let (known, kept) = normal_forms(rule);
    let taken = known.iter().filter(|coding| accepted.takes(coding));
    let taken: Vec<&str> = taken.take(kept).copied().collect();
    request.remove(ACCEPT_ENCODING);
    let value = HeaderValue::from_str(&taken.join(", "));
    if let (false, Ok(value)) = (taken.is_empty(), value) {
        request.insert(ACCEPT_ENCODING, value);
    }
}

/// The codings that a normal form may name, the best first, and how many of
/// those that are taken it names.
const fn normal_forms(rule: NormalizeAcceptEncoding) -> (&'static [&'static str], usize) {
    match rule {
        NormalizeAcceptEncoding::Verbatim => (&[], 0),
        NormalizeAcceptEncoding::Gzip => (&["gzip"], 1),
        NormalizeAcceptEncoding::Brotli => (&["br", "gzip"], 1),
        NormalizeAcceptEncoding::BrotliAndGzip => (&["br", "gzip"], 2),
        NormalizeAcceptEncoding::Zstd => (&["zstd", "br", "gzip"], 1),
        NormalizeAcceptEncoding::Each => (&["zstd", "br", "gzip"], 3),
    }
}

/// The well-formed members of Accept-Encoding: coding in lower case, and
/// whether its weight is above 0.
struct Accepted(Vec<(String, bool)>);

impl Accepted {
    fn of(request: &HeaderMap) -> Self {
        let members = members(request, &ACCEPT_ENCODING);
        Self(members.iter().filter_map(|m| weighted(m)).collect())
    }

    fn takes(&self, coding: &str) -> bool {
        let row = |name: &str| self.0.iter().find(|(coding, _)| coding == name);
        row(coding)
            .or_else(|| row(&format!("x-{coding}")))
            .or_else(|| row("*"))
            .is_some_and(|(_, taken)| *taken)
    }
}

fn weighted(member: &str) -> Option<(String, bool)> {
    let (coding, weight) = match member.split_once(';') {
        Some((coding, weight)) => (coding, is_above_zero(weight.trim())?),
        None => (member, true),
    };
    let coding = coding.trim().to_ascii_lowercase();
    let is_token = !coding.is_empty() && coding.bytes().all(super::head::is_tchar);
    is_token.then_some((coding, weight))
}

/// Reads `q=0.5`; `None` when it is no weight (RFC 9110 12.4.2).
fn is_above_zero(weight: &str) -> Option<bool> {
    let (name, value) = weight.split_once('=')?;
    if !name.trim_end().eq_ignore_ascii_case("q") {
        return None;
    }
    let value: f32 = value.trim_start().parse().ok()?;
    (0.0..=1.0).contains(&value).then_some(value > 0.0)
}

/// The members of a list field, all its lines together.
pub(super) fn members(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter();
    let texts = lines.map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned());
    texts
        .flat_map(|text| split_list(&text).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// Fields in which case means nothing (RFC 9110 8.3.2, 8.4.1 and 8.5.1).
const CASELESS: [HeaderName; 3] = [ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE];

/// Fields that are known to be lists, so that their members alone count.
const LISTS: [HeaderName; 4] = [ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE];

fn push_value(out: &mut Vec<u8>, request: &HeaderMap, name: &HeaderName) {
    if LISTS.contains(name) {
        return push_members(out, request, name);
    }
    let lines = request.get_all(name).iter();
    let lines: Vec<&[u8]> = lines.map(|line| line.as_bytes().trim_ascii()).collect();
    out.extend_from_slice(&lines.join(&b", "[..]));
}

/// Like [`members`], but the bytes as they are, joined by commas; in lower case
/// where case means nothing.
fn push_members(out: &mut Vec<u8>, request: &HeaderMap, name: &HeaderName) {
    let start = out.len();
    let mut first = true;
    for line in request.get_all(name) {
        for member in raw_members(line.as_bytes()) {
            if !first {
                out.push(b',');
            }
            out.extend_from_slice(member);
            first = false;
        }
    }
    if CASELESS.contains(name) {
        out.get_mut(start..)
            .unwrap_or_default()
            .make_ascii_lowercase();
    }
}

/// List members of a value that need not be text; one that is not is a single
/// member.
fn raw_members(value: &[u8]) -> Vec<&[u8]> {
    match std::str::from_utf8(value) {
        Ok(text) => split_list(text).map(str::as_bytes).collect(),
        Err(_) => vec![value.trim_ascii()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Lines<'a> = &'a [(&'a str, &'a [u8])];
    type Values<'a> = &'a [&'a [u8]];

    fn headers(lines: Lines<'_>) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        map
    }

    fn vary_of(lines: &[&str]) -> Vary {
        let lines: Vec<(&str, &[u8])> = lines.iter().map(|l| ("vary", l.as_bytes())).collect();
        vary(&headers(&lines))
    }

    #[test]
    fn all_lines_of_vary_count_and_a_star_anywhere_rfc_9111_4_1() {
        let names = |names: &[&'static str]| {
            Vary::Fields(names.iter().map(|n| HeaderName::from_static(n)).collect())
        };
        let rows: [(&[&str], Vary); 14] = [
            (&[], Vary::Nothing),
            (&[""], Vary::Nothing),
            (&[" , ,"], Vary::Nothing),
            (&["Accept-Encoding"], names(&["accept-encoding"])),
            (&["X-B , x-a,X-A"], names(&["x-a", "x-b"])),
            (
                &["x-a", "Accept-Encoding"],
                names(&["accept-encoding", "x-a"]),
            ),
            (&["", "*"], Vary::Star),
            (&["x-a, *"], Vary::Star),
            (&["*", "x-a"], Vary::Star),
            (&["x a"], Vary::Star),
            (&["X-Forwarded-For"], Vary::Star),
            (&["accept, client-ip"], Vary::Star),
            (&["accept", "Via"], Vary::Star),
            (&["Forwarded"], Vary::Star),
        ];
        for (lines, expected) in rows {
            assert_eq!(vary_of(lines), expected, "{lines:?}");
        }
    }

    fn select(lines: &[(&str, &[u8])]) -> Vec<u8> {
        let fields = [
            HeaderName::from_static("x-a"),
            HeaderName::from_static("x-b"),
        ];
        selected(&fields, &headers(lines))
    }

    #[test]
    fn equal_selections_are_equal_bytes_and_no_others() {
        let same: [(Lines<'_>, Lines<'_>); 4] = [
            (&[("x-a", b"1"), ("x-a", b"2")], &[("x-a", b"1, 2")]),
            (&[("x-a", b" 1 ")], &[("x-a", b"1")]),
            (&[("x-c", b"1")], &[]),
            (
                &[("x-a", b"1"), ("x-b", b"2")],
                &[("x-b", b"2"), ("x-a", b"1")],
            ),
        ];
        for (a, b) in same {
            assert_eq!(select(a), select(b), "{a:?} {b:?}");
        }
        let different: [(Lines<'_>, Lines<'_>); 12] = [
            (&[("x-a", b"1"), ("x-a", b"2")], &[("x-a", b"1")]),
            (
                &[("x-a", b"1"), ("x-a", b"2")],
                &[("x-a", b"2"), ("x-a", b"1")],
            ),
            (&[("x-a", b"")], &[]),
            (&[("x-a", b"1")], &[("x-b", b"1")]),
            (&[("x-a", b"a")], &[("x-a", b"A")]),
            (&[("x-a", b"\"1, 2\"")], &[("x-a", b"\"1,2\"")]),
            (&[("x-a", b"a b")], &[("x-a", b"ab")]),
            (&[("x-a", b"\xff")], &[("x-a", b"\xfe")]),
            (&[("x-a", b"s=a,,b")], &[("x-a", b"s=a,b")]),
            (&[("x-a", b"s=a , b")], &[("x-a", b"s=a, b")]),
            (&[("x-a", b"s=a,b")], &[("x-a", b"s=a, b")]),
            (&[("x-a", b"1")], &[("x-a", b"1,")]),
        ];
        for (a, b) in different {
            assert_ne!(select(a), select(b), "{a:?} {b:?}");
        }
    }

    /// RFC 9111 4.1 takes as equal what the field's own syntax does.
    #[test]
    fn of_lists_alone_blanks_and_empty_members_do_not_count() {
        let select = |name: &'static str, lines: &[&[u8]]| {
            let lines: Vec<_> = lines.iter().map(|line| (name, *line)).collect();
            selected(&[HeaderName::from_static(name)], &headers(&lines))
        };
        for name in [
            "accept",
            "accept-language",
            "accept-charset",
            "accept-encoding",
        ] {
            let one = select(name, &[b"a;q=1,b"]);
            assert_eq!(one, select(name, &[b" a;q=1 ,, b,"]), "{name}");
            assert_eq!(one, select(name, &[b"a;q=1", b"b"]), "{name}");
        }
        for name in ["cookie", "user-agent", "origin", "x-any"] {
            let one = select(name, &[b"a,b"]);
            assert_ne!(one, select(name, &[b"a,,b"]), "{name}");
            assert_ne!(one, select(name, &[b"a , b"]), "{name}");
        }
    }

    #[test]
    fn case_tells_no_languages_charsets_or_codings_apart_rfc_9110_8_5_1() {
        let select = |name: &'static str, value: &[u8]| {
            selected(&[HeaderName::from_static(name)], &headers(&[(name, value)]))
        };
        for name in ["accept-language", "accept-charset", "accept-encoding"] {
            assert_eq!(
                select(name, b"en-GB, De;Q=0.5"),
                select(name, b"EN-gb,de;q=0.5")
            );
            assert_ne!(select(name, b"en, de"), select(name, b"de, en"), "{name}");
        }
        assert_ne!(select("accept", b"a/b;c=D"), select("accept", b"a/b;c=d"));
    }

    fn normalized(rule: NormalizeAcceptEncoding, lines: &[&[u8]]) -> Option<String> {
        let lines: Vec<_> = lines.iter().map(|l| ("accept-encoding", *l)).collect();
        let mut map = headers(&lines);
        normalize_accept_encoding(&mut map, rule);
        assert!(map.get_all(ACCEPT_ENCODING).iter().count() <= lines.len());
        map.get(ACCEPT_ENCODING)
            .map(|v| v.to_str().unwrap().to_owned())
    }

    #[test]
    fn accept_encoding_has_few_normal_forms() {
        use NormalizeAcceptEncoding as Rule;
        let rows: [(Rule, Values<'_>, Option<&str>); 22] = [
            (Rule::Gzip, &[b"gzip, deflate, br"], Some("gzip")),
            (Rule::Gzip, &[b"br", b"gzip"], Some("gzip")),
            (Rule::Gzip, &[b"X-GZIP"], Some("gzip")),
            (Rule::Gzip, &[b"*"], Some("gzip")),
            (Rule::Gzip, &[b"*;q=0"], None),
            (Rule::Gzip, &[b"gzip;q=0, *"], None),
            (Rule::Gzip, &[b"gzip ; q=0.001"], Some("gzip")),
            (Rule::Gzip, &[b"gzip;q=0.000"], None),
            (Rule::Gzip, &[b"br"], None),
            (Rule::Gzip, &[b""], None),
            (Rule::Gzip, &[b",;q="], None),
            (Rule::Gzip, &[b"\xff\xfe,gzip;q=x"], None),
            (Rule::Gzip, &[b"gzipx, xgzip"], None),
            (Rule::Brotli, &[b"gzip, br"], Some("br")),
            (Rule::Brotli, &[b"gzip"], Some("gzip")),
            (Rule::BrotliAndGzip, &[b"gzip", b"br"], Some("br, gzip")),
            (Rule::BrotliAndGzip, &[b"gzip"], Some("gzip")),
            (Rule::Zstd, &[b"gzip, br, zstd"], Some("zstd")),
            (Rule::Zstd, &[b"gzip, br, zstd;q=0"], Some("br")),
            (
                Rule::Each,
                &[b"gzip, br;q=0.1, zstd"],
                Some("zstd, br, gzip"),
            ),
            (Rule::Each, &[b"zstd, gzip, deflate"], Some("zstd, gzip")),
            (Rule::Verbatim, &[b"junk;;"], Some("junk;;")),
        ];
        for (rule, lines, expected) in rows {
            assert_eq!(
                normalized(rule, lines).as_deref(),
                expected,
                "{rule:?} {lines:?}"
            );
        }
        assert_eq!(normalized(Rule::Gzip, &[]), None);
    }

    /// reported.md: A has lines `gzip` and `br`, B only gzip; and 8 KB of junk.
    #[test]
    fn a_client_without_brotli_never_selects_the_brotli_response() {
        let select = |lines: &[&[u8]]| {
            let lines: Vec<_> = lines.iter().map(|l| ("accept-encoding", *l)).collect();
            let mut map = headers(&lines);
            normalize_accept_encoding(&mut map, NormalizeAcceptEncoding::Brotli);
            selected(&[ACCEPT_ENCODING], &map)
        };
        assert_ne!(select(&[b"gzip", b"br"]), select(&[b"gzip"]));
        let junk = [b'\x80'; 8192];
        assert_eq!(select(&[&junk]), select(&[]));
    }

    proptest! {
        #[test]
        fn any_values_select(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let mut map = HeaderMap::new();
                map.append(ACCEPT_ENCODING, value.clone());
                map.append(VARY, value);
                prop_assert!(selected(&[ACCEPT_ENCODING], &map).ends_with(b"\n"));
                prop_assert!(vary(&map) == vary(&map.clone()));
                normalize_accept_encoding(&mut map, NormalizeAcceptEncoding::Gzip);
            }
        }
    }
}
