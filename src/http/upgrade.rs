//! The switch of a connection to another protocol (RFC 9110 7.8 and 15.2.2).
//!
//! Only the origin's 101 switches. What is passed on of a request's Upgrade is
//! what the operator allows; the rest is for this connection only, and is
//! ignored as RFC 9110 7.8 lets any recipient do.

use super::framing::BodyFraming;
use ::http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use base64::prelude::{BASE64_STANDARD, Engine};
use sha1_smol::Sha1;

/// Protocols that carry requests, which would pass every rule unseen: they are
/// never passed on, whatever is allowed.
const HIDING: [&str; 3] = ["h2c", "HTTP", "TLS"];

/// What of a request bears on whether it may ask for another protocol.
#[derive(Clone, Copy, Debug)]
pub struct UpgradeInput<'a> {
    /// The method: GET alone may (RFC 6455 4.1).
    pub method: &'a Method,
    /// The version: HTTP/1.0 has no Upgrade.
    pub version: Version,
    /// The body: a request with one is not switched, so that nobody can take
    /// content for the other protocol's first bytes.
    pub framing: BodyFraming,
    /// The fields.
    pub headers: &'a HeaderMap,
}

/// What a server appends to the key of a `WebSocket`'s request, so that none
/// which knows nothing of the protocol proves by chance that it does
/// (RFC 6455 1.3).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The protocols that a request offers to switch to, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    value: HeaderValue,
    /// The proof that a `WebSocket`'s server has to give, if the request has one
    /// key.
    proof: Option<String>,
}

impl Offer {
    /// What the request offers of the protocols in `allowed`, a list of names
    /// between blanks or commas (`none` is nobody's), in the client's order.
    /// None if that is nothing, or if Connection does not nominate Upgrade.
    #[must_use]
    pub fn of(input: &UpgradeInput<'_>, allowed: &str) -> Option<Self> {
        let headers = input.headers;
        let may = headers.contains_key(UPGRADE)
            && *input.method == Method::GET
            && input.version >= Version::HTTP_11
            && input.framing == BodyFraming::None
            && nominates_upgrade(headers);
        let offered = members(headers, &UPGRADE).filter(|_| may);
        let kept: Vec<&[u8]> = offered
            .filter(|one| !name(one).is_empty() && is_allowed(one, allowed))
            .collect();
        if kept.is_empty() {
            return None;
        }
        let value = HeaderValue::from_bytes(&kept.join(&b", "[..])).ok()?;
        let proof = only(headers, &SEC_WEBSOCKET_KEY).map(|key| proof_of(key.as_bytes()));
        Some(Self { value, proof })
    }

    /// The value of the Upgrade that goes to the origin.
    #[must_use]
    pub const fn value(&self) -> &HeaderValue {
        &self.value
    }

    /// Whether a WebSocket is among what is offered (RFC 6455).
    #[must_use]
    pub fn is_websocket(&self) -> bool {
        split(self.value.as_bytes()).any(is_websocket)
    }

    /// Whether the fields of a 101 switch to what was offered and to nothing
    /// else: a server must not choose for itself (RFC 9110 7.8), and that of a
    /// `WebSocket` must prove that it read this very request (RFC 6455 4.2.2).
    #[must_use]
    pub fn is_taken_by(&self, headers: &HeaderMap) -> bool {
        let is_offered = |one: &[u8]| {
            let mut offered = split(self.value.as_bytes());
            offered.any(|known| name(known).eq_ignore_ascii_case(name(one)))
        };
        headers.contains_key(UPGRADE)
            && members(headers, &UPGRADE).all(is_offered)
            && nominates_upgrade(headers)
            && (!members(headers, &UPGRADE).any(is_websocket) || self.is_proven_by(headers))
    }

    fn is_proven_by(&self, headers: &HeaderMap) -> bool {
        let given = only(headers, &SEC_WEBSOCKET_ACCEPT);
        let proof = self.proof.as_ref().map(String::as_bytes);
        proof.is_some() && given.map(HeaderValue::as_bytes) == proof
    }
}

/// Whether WebSockets are among the protocols that are passed on, as
/// [`Offer::of`] reads them.
#[must_use]
pub fn lets_websockets(allowed: &str) -> bool {
    is_allowed(b"websocket", allowed)
}

fn proof_of(key: &[u8]) -> String {
    let mut sum = Sha1::new();
    sum.update(key);
    sum.update(WEBSOCKET_GUID);
    BASE64_STANDARD.encode(sum.digest().bytes())
}

fn is_websocket(protocol: &[u8]) -> bool {
    name(protocol).eq_ignore_ascii_case(b"websocket")
}

/// The field's value, if it is on one line.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    let first = lines.next();
    first.filter(|_| lines.next().is_none())
}

/// The value of Sec-WebSocket-Key for these bytes (RFC 6455 4.1).
#[must_use]
pub fn websocket_key(bytes: [u8; 16]) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn is_allowed(protocol: &[u8], allowed: &str) -> bool {
    let is = |known: &str| name(protocol).eq_ignore_ascii_case(known.as_bytes());
    let mut names = allowed.split([' ', '\t', ',']);
    names.any(|known| known != "none" && is(known)) && !HIDING.iter().any(|known| is(known))
}

/// `name` of `name[/version]`.
fn name(protocol: &[u8]) -> &[u8] {
    let mut parts = protocol.split(|byte| *byte == b'/');
    parts.next().unwrap_or_default()
}

fn nominates_upgrade(headers: &HeaderMap) -> bool {
    members(headers, &CONNECTION).any(|option| option.eq_ignore_ascii_case(b"upgrade"))
}

fn members<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    let lines = headers.get_all(name).into_iter();
    lines.flat_map(|line| split(line.as_bytes()))
}

fn split(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    fn asked(upgrade: &'static str) -> HeaderMap {
        fields(&[("connection", "keep-alive, Upgrade"), ("upgrade", upgrade)])
    }

    fn offer(headers: &HeaderMap, allowed: &str) -> Option<Offer> {
        let input = UpgradeInput {
            method: &Method::GET,
            version: Version::HTTP_11,
            framing: BodyFraming::None,
            headers,
        };
        Offer::of(&input, allowed)
    }

    #[test]
    fn only_allowed_protocols_are_offered_in_the_client_s_order_rfc_9110_7_8() {
        for (upgrade, allowed, offered) in [
            ("websocket", "websocket", Some("websocket")),
            ("WebSocket", "foo, websocket", Some("WebSocket")),
            ("b/2, x, a", "a b", Some("b/2, a")),
            ("websocket", "", None),
            ("none", "none", None),
            ("websockets", "websocket", None),
            ("h2c", "h2c websocket", None),
            ("HTTP/2.0", "http", None),
            ("tls/1.0, websocket", "tls websocket", Some("websocket")),
            (", ,", "websocket", None),
        ] {
            let offer = offer(&asked(upgrade), allowed);
            let value = offer.as_ref().map(|offer| offer.value().to_str().unwrap());
            assert_eq!(value, offered, "{upgrade:?} of {allowed:?}");
        }
    }

    #[test]
    fn what_is_no_upgrade_offers_nothing() {
        let headers = asked("websocket");
        let good = UpgradeInput {
            method: &Method::GET,
            version: Version::HTTP_11,
            framing: BodyFraming::None,
            headers: &headers,
        };
        let other = fields(&[("connection", "keep-alive"), ("upgrade", "websocket")]);
        assert!(Offer::of(&good, "websocket").is_some());
        for input in [
            UpgradeInput {
                method: &Method::POST,
                ..good
            },
            UpgradeInput {
                version: Version::HTTP_10,
                ..good
            },
            UpgradeInput {
                framing: BodyFraming::Length(0),
                ..good
            },
            UpgradeInput {
                framing: BodyFraming::Chunked,
                ..good
            },
            UpgradeInput {
                headers: &other,
                ..good
            },
        ] {
            assert_eq!(Offer::of(&input, "websocket"), None, "{input:?}");
        }
    }

    #[test]
    fn a_101_switches_only_to_what_was_offered_rfc_9110_7_8() {
        let offer = offer(&with_key("websocket, x/1"), "websocket x").unwrap();
        assert!(offer.is_websocket());
        for (upgrade, taken) in [
            ("websocket", true),
            ("WEBSOCKET", true),
            ("x/2", true),
            ("h2c", false),
            ("websocket, h2c", false),
            ("", false),
        ] {
            let mut answer = asked(upgrade);
            answer.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static(PROOF));
            assert_eq!(offer.is_taken_by(&answer), taken, "{upgrade:?}");
        }
        assert!(!offer.is_taken_by(&fields(&[("connection", "upgrade")])));
        assert!(!offer.is_taken_by(&fields(&[("upgrade", "websocket")])));
    }

    /// The key and the proof of RFC 6455 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    fn with_key(upgrade: &'static str) -> HeaderMap {
        let mut headers = asked(upgrade);
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_static(KEY));
        headers
    }

    #[test]
    fn a_websocket_s_server_proves_that_it_read_the_key_rfc_6455_4_2_2() {
        let taken_by = |request: &HeaderMap, upgrade, accepts: &[&'static str]| {
            let mut answer = asked(upgrade);
            for accept in accepts {
                answer.append(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_static(accept));
            }
            let offer = offer(request, "websocket x").unwrap();
            offer.is_taken_by(&answer)
        };
        let request = with_key("websocket, x");
        assert!(taken_by(&request, "websocket", &[PROOF]));
        assert!(taken_by(&request, "x", &[]));
        for accepts in [
            &[][..],
            &[""],
            &[KEY],
            &[PROOF, PROOF],
            &["S3PPLMBITXAQ9KYGZZHZRBK+XOO="],
        ] {
            assert!(!taken_by(&request, "websocket", accepts), "{accepts:?}");
        }
        let keyless = asked("websocket");
        assert!(!taken_by(&keyless, "websocket", &[PROOF]));
        let mut twice = request;
        twice.append(SEC_WEBSOCKET_KEY, HeaderValue::from_static(KEY));
        assert!(!taken_by(&twice, "websocket", &[PROOF]));
    }

    #[test]
    fn a_key_is_sixteen_bytes_in_base64_rfc_6455_4_1() {
        assert_eq!(websocket_key(*b"the sample nonce"), KEY);
    }
}
