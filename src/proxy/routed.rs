//! A request that is to be carried out: who asks, for what, of whom.

use super::client::RequestHead;
use super::forward;
use super::origin::{Place, Upstream};
use super::peer::Peer;
use super::snapshot::Snapshot;
use super::via::{Detail, Told};
use crate::base::clock::MonoTime;
use crate::base::scheme::Scheme;
use crate::cache::CacheKey;
use crate::http::cache_control;
use crate::http::forwarded::{self, Hop};
use crate::http::forwarding::{self, CLIENT_IP, ViaIdentity};
use crate::http::policy::CachePolicy;
use crate::http::target::RequestUrl;
use crate::http::upgrade::Offer;
use crate::remap::Client;
use bytes::Bytes;
use http::header::{EXPECT, HOST, PRAGMA, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::borrow::Cow;
use std::sync::Arc;

/// Response fields that hold URLs, which reverse_map rules rewrite.
const URL_FIELDS: [HeaderName; 4] = [
    http::header::LOCATION,
    http::header::CONTENT_LOCATION,
    HeaderName::from_static("uri"),
    HeaderName::from_static("destination"),
];

/// Who chose the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The operator, by a rule with a literal target.
    Reverse,
    /// The client.
    Forward,
}

/// A request that was let through, with everything that carrying it out takes.
#[derive(Debug)]
pub struct Routed {
    /// The request as received, without the fields that its Connection
    /// nominates.
    pub head: RequestHead,
    /// The connection's two ends.
    pub peer: Peer,
    /// The configuration that holds for this transaction.
    pub snapshot: Arc<Snapshot>,
    /// The rules of storing and reuse for this request: the snapshot's, or as
    /// cache.config has them.
    pub policy: Arc<CachePolicy>,
    /// Who chose the origin.
    pub mode: Mode,
    /// The URL that the client asked for.
    pub url: RequestUrl,
    /// Where the request goes, and who judges the address.
    pub upstream: Upstream,
    /// What the connection may be switched to, if the origin agrees: the cache
    /// has no part in it then.
    pub upgrade: Option<Offer>,
    /// What the response is stored by: the client's URL when it keeps its Host
    /// (`pristine_host_hdr` 1), else the origin's.
    pub key: CacheKey,
    /// The content, where it was read to be part of the key.
    pub content: Option<Bytes>,
    /// When the head was whole.
    pub mono: MonoTime,
}

impl Routed {
    /// The fields that go to the origin: without those of this connection,
    /// with its Host and what a proxy adds: `told` is for Via. Framing fields
    /// are the sender's business, Expect was answered here.
    #[must_use]
    pub(super) fn origin_fields(&self, identity: &ViaIdentity, told: Told) -> HeaderMap {
        let records = &self.snapshot.records;
        let mut fields = self.head.headers.clone();
        forwarding::remove_hop_by_hop(&mut fields);
        self.remove_directives(&mut fields);
        fields.remove(EXPECT);
        forwarding::max_forwards(&self.head.method, &mut fields);
        if let Ok(host) = HeaderValue::from_str(&self.host()) {
            fields.insert(HOST, host);
        }
        set_client_ip(&mut fields, records.http_insert_client_ip, &self.peer);
        if records.http_insert_squid_x_forwarded_for != 0 {
            forwarding::append_forwarded_for(&mut fields, self.peer.ip());
        }
        let parts = forwarded::Parts::named(&records.http_insert_forwarded);
        forwarded::append(&mut fields, parts, &self.hop(identity));
        let level = records.http_insert_request_via_str;
        if level != 0 {
            let detail = Detail::new(level, self, told);
            let member = identity.request_member(self.head.version, detail);
            forwarding::append_member(&mut fields, &VIA, &member);
        }
        fields
    }

    fn hop<'a>(&'a self, identity: &'a ViaIdentity) -> Hop<'a> {
        let peer = &self.peer;
        Hop {
            client: peer.is_known.then(|| peer.ip()),
            local: peer.local.ip(),
            identity,
            secured: peer.scheme == Scheme::Https,
            host: self.url.authority(),
            version: self.head.version,
        }
    }

    /// In reverse mode, directives that ask of a cache what its operator does not
    /// grant, or that are answered here, are not another cache's business: what a
    /// GET or HEAD fetches is for others too.
    fn remove_directives(&self, fields: &mut HeaderMap) {
        let is_read = matches!(self.head.method, Method::GET | Method::HEAD);
        if self.mode == Mode::Forward || !is_read {
            return;
        }
        let mut names = vec!["max-stale", "min-fresh"];
        if self.policy.ignore_client_max_age {
            names.push("max-age");
        }
        if self.policy.ignore_client_no_cache {
            names.push("no-cache");
            fields.remove(PRAGMA);
        }
        cache_control::remove_directives(fields, &names);
    }

    /// Whether the client is one that looks after the cache, and so is told
    /// Cache-Status. Its loopback address proves nothing behind a balancer.
    #[must_use]
    pub(super) fn tells_cache_status(&self) -> bool {
        let is_relayed = forward::is_relayed(&self.peer, &self.head.headers);
        let client = Client::new(self.peer.ip(), self.head.method.as_str());
        let client = client.relayed(is_relayed, true);
        self.snapshot.cache_status.allows(&client)
    }

    /// What the origin's Host field says: the client's own Host with
    /// `pristine_host_hdr` 1, else the origin.
    fn host(&self) -> Cow<'_, str> {
        let records = &self.snapshot.records;
        match &self.upstream.place {
            Place::Server { scheme, host, port } if records.url_remap_pristine_host_hdr == 0 => {
                authority(scheme, host, *port)
            }
            Place::Server { .. } | Place::Generator => self.url.authority().into(),
        }
    }

    /// Whether [`Self::rewrite_urls`] has anything to do in these field lines.
    #[must_use]
    pub fn has_urls(&self, lines: &[u8]) -> bool {
        let names_url = |line: &[u8]| {
            let colon = memchr::memchr(b':', line).unwrap_or(0);
            let name = &line[..colon];
            let is_name = |url: &HeaderName| name.eq_ignore_ascii_case(url.as_str().as_bytes());
            URL_FIELDS.iter().any(is_name)
        };
        self.snapshot.remap.rewrites_locations() && lines.split(|b| *b == b'\n').any(names_url)
    }

    /// Puts the client's names for the origin's URLs into a response
    /// (reverse_map rules).
    pub fn rewrite_urls(&self, fields: &mut HeaderMap) {
        for name in &URL_FIELDS {
            let value = fields.get(name).and_then(|value| value.to_str().ok());
            let rewritten = value.and_then(|url| self.snapshot.remap.rewrite_location(url));
            if let Some(Ok(value)) = rewritten.map(|url| HeaderValue::from_str(&url)) {
                fields.insert(name, value);
            }
        }
    }
}

/// Host, with the port unless it is the scheme's own.
fn authority<'h>(scheme: &str, host: &'h str, port: u16) -> Cow<'h, str> {
    match (scheme, port) {
        ("http", 80) | ("https", 443) => host.into(),
        _ => format!("{host}:{port}").into(),
    }
}

/// A client's own Client-ip is never believed (`http.insert_client_ip`: 1 keeps
/// one that a client of ours, itself a proxy, has set).
fn set_client_ip(fields: &mut HeaderMap, level: i64, peer: &Peer) {
    match level {
        0 => {
            fields.remove(CLIENT_IP);
        }
        1 if fields.contains_key(CLIENT_IP) => {}
        _ => forwarding::set_client_ip(fields, peer.ip()),
    }
}
