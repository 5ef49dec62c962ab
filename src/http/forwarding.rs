//! What an intermediary takes off and puts on a message that it passes on
//! (RFC 9110 7.6).

use ::http::header::{
    self, CONNECTION, CONTENT_LENGTH, DATE, HeaderName, HeaderValue, MAX_FORWARDS, TE,
    TRANSFER_ENCODING, VIA,
};
use ::http::{HeaderMap, Method, Version};
use std::fmt::{self, Display};
use std::net::IpAddr;

/// The client's address as ATS passes it on; only ever ours.
pub const CLIENT_IP: HeaderName = HeaderName::from_static("client-ip");
/// The addresses that a request came through.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_AUTHENTICATION_INFO: HeaderName = HeaderName::from_static("proxy-authentication-info");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Fields for one connection only (RFC 9110 7.6.1), and those by which a client
/// and a proxy authenticate (11.7).
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    TE,
    TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    PROXY_AUTHENTICATION_INFO,
    header::PROXY_AUTHORIZATION,
];

/// Fields for all recipients, which Connection can't nominate: those that
/// frame, route, select, describe or control the content.
const NOT_NOMINABLE: [HeaderName; 24] = [
    header::ACCEPT_ENCODING,
    header::AGE,
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    CLIENT_IP,
    header::CONTENT_ENCODING,
    CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::COOKIE,
    DATE,
    header::ETAG,
    header::EXPIRES,
    header::FORWARDED,
    header::HOST,
    header::LAST_MODIFIED,
    header::LOCATION,
    MAX_FORWARDS,
    header::RANGE,
    header::SET_COOKIE,
    header::VARY,
    VIA,
    X_FORWARDED_FOR,
];

/// Whether the field is for one connection only.
#[must_use]
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name)
}

/// The fields that Connection nominates, without those that it can't.
#[must_use]
pub fn nominated(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(CONNECTION).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|b| *b == b','))
        .filter_map(|option| HeaderName::from_bytes(option.trim_ascii()).ok())
        .filter(|name| !NOT_NOMINABLE.contains(name))
        .collect()
}

/// Takes off a request what Connection nominates, so that nothing is decided by
/// what the origin does not see (RFC 9110 7.6.1). Fields that are hop-by-hop by
/// themselves stay, Connection too.
pub fn remove_nominated(headers: &mut HeaderMap) {
    for name in nominated(headers)
        .iter()
        .filter(|name| !is_hop_by_hop(name))
    {
        headers.remove(name);
    }
}

/// Takes off every hop-by-hop field and every nominated one, from a request or
/// a response. Read Upgrade, TE and the framing before: they go too.
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in nominated(headers).iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Who we are in Via.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViaIdentity {
    /// The name by which we are known, without spaces.
    pub alias: String,
    /// This process's own id, by which it knows its own requests again.
    pub uuid: String,
    /// What stands in the comment before any detail, such as `Strata/0.1.0`.
    pub product: String,
}

impl ViaIdentity {
    /// Our member of a request's Via: `1.1 alias[uuid] (product detail)`, where
    /// `version` is that of the request as received, and `detail` is empty or
    /// such as ` [uScMsSf]`, with its leading space.
    #[must_use]
    pub fn request_member(&self, version: Version, detail: impl Display) -> String {
        let Self {
            alias,
            uuid,
            product,
        } = self;
        format!("{} {alias}[{uuid}] ({product}{detail})", protocol(version))
    }

    /// Our member of a response's Via: `1.1 alias (product detail)`, where
    /// `version` is that of the response as received, and `detail` is as in
    /// [`Self::request_member`].
    #[must_use]
    pub fn response_member(&self, version: Version, detail: impl Display) -> impl Display {
        let Self { alias, product, .. } = self;
        let version = protocol(version);
        fmt::from_fn(move |out| write!(out, "{version} {alias} ({product}{detail})"))
    }

    /// How many times the request went through this very process before
    /// (RFC 9110 7.6.3): more than 0 is a loop.
    #[must_use]
    pub fn passes(&self, headers: &HeaderMap) -> usize {
        if !headers.contains_key(VIA) {
            return 0;
        }
        let mark = format!("[{}]", self.uuid);
        let lines = headers.get_all(VIA).iter();
        lines
            .map(|line| {
                let bytes = line.as_bytes();
                bytes
                    .windows(mark.len())
                    .filter(|w| *w == mark.as_bytes())
                    .count()
            })
            .sum()
    }
}

/// Appends `member` to the list field `name`, whose lines become one. Bytes of
/// the existing lines are kept as they are.
///
/// A member that can't stand in a field value is not added.
pub fn append_member(headers: &mut HeaderMap, name: &HeaderName, member: &str) {
    let mut value = joined(headers, name);
    if !value.is_empty() {
        value.extend_from_slice(b", ");
    }
    value.extend_from_slice(member.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&value) {
        headers.insert(name, value);
    }
}

/// Appends the client's address to X-Forwarded-For.
pub fn append_forwarded_for(headers: &mut HeaderMap, client: IpAddr) {
    append_member(
        headers,
        &X_FORWARDED_FOR,
        &client.to_canonical().to_string(),
    );
}

/// Sets Client-ip to the client's address, whatever the client said.
pub fn set_client_ip(headers: &mut HeaderMap, client: IpAddr) {
    let text = client.to_canonical().to_string();
    headers.remove(CLIENT_IP);
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(CLIENT_IP, value);
    }
}

/// Gives a response that lacks Date the time at which it was received
/// (RFC 9110 6.6.1).
pub fn ensure_date(headers: &mut HeaderMap, received: crate::base::clock::WallTime) {
    if !headers.contains_key(DATE)
        && let Ok(value) = HeaderValue::from_str(&super::date::format(received))
    {
        headers.insert(DATE, value);
    }
}

/// What Max-Forwards asks of us (RFC 9110 7.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxForwards {
    /// Pass the request on; the field was lowered where it counts.
    Forward,
    /// Answer the request here: its count is used up.
    Answer,
}

/// Honours Max-Forwards of TRACE and OPTIONS; of other methods, and where it is
/// no number, it does not count.
pub fn max_forwards(method: &Method, headers: &mut HeaderMap) -> MaxForwards {
    match hops_left(method, headers) {
        None => MaxForwards::Forward,
        Some(0) => MaxForwards::Answer,
        Some(left) => {
            headers.insert(MAX_FORWARDS, HeaderValue::from(left - 1));
            MaxForwards::Forward
        }
    }
}

/// Whether [`max_forwards`] would say [`MaxForwards::Answer`].
#[must_use]
pub fn ends_here(method: &Method, headers: &HeaderMap) -> bool {
    hops_left(method, headers) == Some(0)
}

fn hops_left(method: &Method, headers: &HeaderMap) -> Option<u32> {
    if *method != Method::TRACE && *method != Method::OPTIONS {
        return None;
    }
    let value = headers.get(MAX_FORWARDS)?.to_str().ok()?;
    let digits = Some(value).filter(|v| v.bytes().all(|b| b.is_ascii_digit()));
    digits?.parse().ok()
}

/// The lines of a field as one value.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Vec<u8> {
    let lines: Vec<&[u8]> = headers
        .get_all(name)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    lines.join(&b", "[..])
}

const fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2.0",
        Version::HTTP_3 => "3.0",
        _ => "1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::WallTime;
    use crate::http::testing::headers;

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    /// reported.md: `Connection: X-Secret, close`; `a, b` of a, b, c.
    #[test]
    fn nominated_fields_go_and_others_stay_rfc_9110_7_6_1() {
        let mut map = headers(&[
            ("connection", "X-Secret, close"),
            ("connection", " a ,, b, @"),
            ("x-secret", "1"),
            ("a", "1"),
            ("a", "2"),
            ("b", "1"),
            ("c", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "Basic x"),
            ("proxy-authenticate", "Basic"),
            ("proxy-authentication-info", "x"),
            ("trailer", "x-sum"),
        ]);
        remove_hop_by_hop(&mut map);
        assert_eq!(names(&map), ["c", "trailer"]);
    }

    #[test]
    fn fields_for_all_recipients_cannot_be_nominated() {
        for name in NOT_NOMINABLE {
            let mut map = headers(&[("connection", name.as_str()), (name.as_str(), "1")]);
            remove_hop_by_hop(&mut map);
            assert!(map.contains_key(&name), "{name}");
            assert!(!map.contains_key(CONNECTION));
        }
    }

    fn identity() -> ViaIdentity {
        ViaIdentity {
            alias: "edge1".into(),
            uuid: "6f1d".into(),
            product: "Strata/0.1.0".into(),
        }
    }

    #[test]
    fn via_names_us_and_shows_a_loop_rfc_9110_7_6_3() {
        let us = identity();
        let mut map = headers(&[("via", "1.0 fred"), ("via", "1.1 p[0000] (x)")]);
        assert_eq!(us.passes(&map), 0);
        append_member(&mut map, &VIA, &us.request_member(Version::HTTP_11, ""));
        assert_eq!(
            map[VIA],
            "1.0 fred, 1.1 p[0000] (x), 1.1 edge1[6f1d] (Strata/0.1.0)"
        );
        assert_eq!(map.get_all(VIA).iter().count(), 1);
        assert_eq!(us.passes(&map), 1);
        let other = ViaIdentity {
            uuid: "ffff".into(),
            ..us.clone()
        };
        assert_eq!(other.passes(&map), 0);
        assert_eq!(
            us.response_member(Version::HTTP_10, "").to_string(),
            "1.0 edge1 (Strata/0.1.0)"
        );
        let detail = us.response_member(Version::HTTP_11, " [uScHs]");
        let expected = "1.1 edge1 (Strata/0.1.0 [uScHs])";
        assert_eq!(detail.to_string(), expected);
    }

    #[test]
    fn addresses_are_appended_or_replaced() {
        let client: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
        let mut map = headers(&[
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-for", "10.0.0.2"),
            ("client-ip", "127.0.0.1"),
            ("client-ip", "127.0.0.2"),
        ]);
        append_forwarded_for(&mut map, client);
        set_client_ip(&mut map, client);
        assert_eq!(map[&X_FORWARDED_FOR], "10.0.0.1, 10.0.0.2, 192.0.2.7");
        let ours: Vec<_> = map.get_all(&CLIENT_IP).iter().collect();
        assert_eq!(ours, ["192.0.2.7"]);
    }

    #[test]
    fn max_forwards_counts_down_for_trace_and_options_rfc_9110_7_6_2() {
        let run = |method: Method, value: &str| {
            let mut map = headers(&[("max-forwards", value)]);
            let asked = max_forwards(&method, &mut map);
            (asked, map[MAX_FORWARDS].to_str().unwrap().to_owned())
        };
        assert_eq!(run(Method::TRACE, "0"), (MaxForwards::Answer, "0".into()));
        assert_eq!(
            run(Method::OPTIONS, "3"),
            (MaxForwards::Forward, "2".into())
        );
        for bad in ["-1", "+1", "x", "", "99999999999"] {
            assert_eq!(run(Method::TRACE, bad), (MaxForwards::Forward, bad.into()));
        }
        assert_eq!(run(Method::GET, "0"), (MaxForwards::Forward, "0".into()));
        let mut none = HeaderMap::new();
        assert_eq!(
            max_forwards(&Method::TRACE, &mut none),
            MaxForwards::Forward
        );
    }

    #[test]
    fn a_date_is_given_where_none_is() {
        let mut map = HeaderMap::new();
        ensure_date(&mut map, WallTime::from_secs(0));
        assert_eq!(map[DATE], "Thu, 01 Jan 1970 00:00:00 GMT");
        ensure_date(&mut map, WallTime::from_secs(10));
        assert_eq!(map[DATE], "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
