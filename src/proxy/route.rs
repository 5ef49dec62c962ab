//! From a request's head to what becomes of it: pure, from the snapshot alone.

use super::answer::Answer;
use super::cache_rules::Asked;
use super::client::RequestHead;
use super::forward;
use super::introduction::{self, Introduction};
use super::key::cache_key;
use super::origin::{AddressGuard, Place, Upstream};
use super::peer::Peer;
use super::routed::{Mode, Routed};
use super::snapshot::Snapshot;
use crate::base::clock::MonoTime;
use crate::config::remap::Plugin;
use crate::config::sni::Policy;
use crate::http::forwarding::{self, ViaIdentity};
use crate::http::policy::CachePolicy;
use crate::http::target::{Authority, RequestUrl, Target};
use crate::remap::{Client, CompiledRule, Found, TargetUrl};
use http::{Method, StatusCode};
use std::net::SocketAddr;
use std::sync::Arc;

/// Where and when a request came in.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The connection's two ends.
    pub peer: &'a Peer,
    /// Who we are in Via.
    pub identity: &'a ViaIdentity,
    /// Every address that this server listens on.
    pub own: &'a Arc<[SocketAddr]>,
    /// When the head was whole.
    pub mono: MonoTime,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Step {
    /// An answer of our own.
    Answer(Answer),
    /// A redirect, of this status to this URL.
    Redirect(StatusCode, String),
    /// The request's own head comes back (RFC 9110 9.3.8).
    Echo(Box<RequestHead>),
    /// A tunnel to this place, whose address the guard judges.
    Tunnel(Upstream),
    /// The cache forgets this object.
    Purge(Box<Routed>),
    /// The cache is given this object.
    Push(Box<Routed>),
    /// The cache or the origin answers.
    Carry(Box<Routed>),
}

/// Judges a request: loops, forms, rules, filters, ip_allow, forwarding.
#[must_use]
pub fn route(head: RequestHead, snapshot: &Arc<Snapshot>, arrival: &Arrival<'_>) -> Step {
    let own_passes = arrival.identity.passes(&head.headers);
    if own_passes > allowed_passes(snapshot) {
        return Step::Answer(Answer::CycleDetected);
    }
    if !admits(&head.target, snapshot, arrival.peer) {
        return Step::Answer(Answer::MisdirectedName);
    }
    let router = Router {
        snapshot,
        arrival,
        ruled: false,
    };
    match &head.target {
        Target::Authority(authority) => router.tunnel(&head, authority),
        Target::Asterisk(_) => Step::Answer(Answer::Options),
        Target::Origin(url) => {
            let mapped = snapshot.records.reverse_proxy_enabled != 0;
            router.find(url.clone(), head, mapped)
        }
        Target::Absolute(url) => router.find(url.clone(), head, true),
    }
}

/// Whether the client may ask for that host on this connection, which was made
/// for another name maybe. A tunnel ends elsewhere: its host is no name here.
fn admits(target: &Target, snapshot: &Snapshot, peer: &Peer) -> bool {
    let (Some(session), Target::Origin(url) | Target::Absolute(url)) = (&peer.session, target)
    else {
        return true;
    };
    let otherwise = match snapshot.records.http_host_sni_policy {
        0 => Policy::Disabled,
        1 => Policy::Permissive,
        _ => Policy::Enforced,
    };
    snapshot.sni.admit(url.host(), (session, peer), otherwise)
}

fn allowed_passes(snapshot: &Snapshot) -> usize {
    usize::try_from(snapshot.records.http_max_proxy_cycles).unwrap_or(0)
}

struct Router<'a> {
    snapshot: &'a Arc<Snapshot>,
    arrival: &'a Arrival<'a>,
    /// Whether the snapshot is that of a rule which overrides records.
    ruled: bool,
}

impl Router<'_> {
    /// Finds the rule. One for the other kind of connection is none for this
    /// client, whatever the target says (RFC 9110 7.4); what no rule is for may
    /// be forwarded, and is another server's to secure.
    fn find(&self, url: RequestUrl, head: RequestHead, mapped: bool) -> Step {
        let snapshot = self.snapshot;
        let found = match mapped {
            true if self.asks_for_websocket(&head) => snapshot.remap.find_websocket(&url),
            true => snapshot.remap.find(&url),
            false => Found::None,
        };
        let is_elsewhere = url.scheme_kind().connection() != self.arrival.peer.scheme;
        if is_elsewhere && !matches!(found, Found::None) {
            return Step::Answer(Answer::Misdirected);
        }
        match found {
            Found::Map {
                rule,
                target,
                literal_target,
            } => {
                let mode = if literal_target {
                    Mode::Reverse
                } else {
                    Mode::Forward
                };
                self.mapped(head, url, rule, (target, mode))
            }
            Found::Redirect { status, location } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FOUND);
                Step::Redirect(status, location)
            }
            Found::None => self.unmatched(head, url),
        }
    }

    fn mapped(
        &self,
        head: RequestHead,
        url: RequestUrl,
        rule: &CompiledRule,
        (target, mode): (TargetUrl, Mode),
    ) -> Step {
        let generated = is_generated(rule);
        // The generator makes as many bytes as it is asked for: the loopback of
        // its rule is not everybody whom a balancer on this machine lets in.
        let judged_as = if generated { Mode::Forward } else { mode };
        let client = self.client(&head, judged_as);
        if rule.refused_by(&client).is_some() {
            return Step::Answer(Answer::AccessDenied);
        }
        if rule.ip_allow_holds() && !self.snapshot.ip_allow.allows_client(&client) {
            return Step::Answer(Answer::AccessDenied);
        }
        let place = if generated {
            Place::Generator
        } else {
            Place::Server {
                scheme: target.scheme.as_str(),
                host: Arc::clone(&target.host),
                port: target.port,
            }
        };
        let aim = Aim {
            place,
            target,
            mode,
        };
        if rule.overrides().is_empty() {
            return self.judged(head, url, aim);
        }
        let ruled = Router {
            snapshot: &self.snapshot.by_rule(rule),
            arrival: self.arrival,
            ruled: true,
        };
        ruled.judged(head, url, aim)
    }

    /// Section 1.7 of ATS's reference: 404 in two wordings, 400 without a host.
    fn unmatched(&self, head: RequestHead, url: RequestUrl) -> Step {
        let records = &self.snapshot.records;
        if url.host().is_empty() {
            return match &records.header_parse_no_host_url_redirect {
                Some(location) => Step::Redirect(StatusCode::FOUND, location.to_string()),
                None => Step::Answer(Answer::HostRequired),
            };
        }
        if records.url_remap_remap_required != 0 {
            return Step::Answer(match head.target {
                Target::Origin(_) => Answer::NotFoundOnAccelerator,
                Target::Absolute(_) | Target::Authority(_) | Target::Asterisk(_) => {
                    Answer::NotFound
                }
            });
        }
        let client = self.client(&head, Mode::Forward);
        if !self.snapshot.ip_allow.allows_client(&client) {
            return Step::Answer(Answer::AccessDenied);
        }
        let place = Place::Server {
            scheme: url.scheme(),
            host: url.host().into(),
            port: url.port(),
        };
        let target = forward::target_of(&url);
        let mode = Mode::Forward;
        self.judged(
            head,
            url,
            Aim {
                place,
                target,
                mode,
            },
        )
    }

    /// What rules and ip_allow let through: the method and the forwarding are
    /// left to judge.
    fn judged(&self, head: RequestHead, url: RequestUrl, aim: Aim) -> Step {
        if aim.mode == Mode::Forward {
            let client = self.client(&head, Mode::Forward);
            if !self.snapshot.forward.allows(&client) {
                return Step::Answer(Answer::ForwardDenied);
            }
            // A hit connects to nothing, so an address is judged here already.
            let guard = self.guard(&head.method, aim.target.port);
            if forward::address_of(&aim.target.host).is_some_and(|ip| guard(ip).is_err()) {
                return Step::Answer(Answer::ForwardDenied);
            }
        }
        let pushes = head.method.as_str() == "PUSH";
        if pushes && self.snapshot.records.http_push_method_enabled == 0 {
            return Step::Answer(Answer::AccessDenied);
        }
        if forwarding::ends_here(&head.method, &head.headers) {
            return if head.method == Method::TRACE {
                Step::Echo(Box::new(head))
            } else {
                Step::Answer(Answer::Options)
            };
        }
        let purges = head.method.as_str() == "PURGE";
        let routed = Box::new(self.routed(head, url, aim));
        match (purges, pushes) {
            (true, _) => Step::Purge(routed),
            (_, true) => Step::Push(routed),
            _ => Step::Carry(routed),
        }
    }

    fn asks_for_websocket(&self, head: &RequestHead) -> bool {
        let offer = head.upgrade(&self.snapshot.records.http_upgrade_protocols);
        offer.is_some_and(|offer| offer.is_websocket())
    }

    fn routed(&self, mut head: RequestHead, url: RequestUrl, aim: Aim) -> Routed {
        let (guard, options) = match aim.mode {
            Mode::Reverse => (None, self.ruled.then_some(&self.snapshot.origin)),
            Mode::Forward => (
                Some(self.guard(&head.method, aim.target.port)),
                Some(&self.snapshot.chosen_origin),
            ),
        };
        let options = options.map(Arc::clone);
        let key = cache_key(&self.snapshot.records, &url, &aim.target);
        let upgrade = head.upgrade(&self.snapshot.records.http_upgrade_protocols);
        let policy = self.policy(&head.method, &aim.target);
        // An alternate is selected by what the origin sees (RFC 9111 4.1).
        forwarding::remove_nominated(&mut head.headers);
        Routed {
            head,
            peer: self.arrival.peer.clone(),
            snapshot: Arc::clone(self.snapshot),
            policy,
            mode: aim.mode,
            url,
            upstream: Upstream {
                place: aim.place,
                path_and_query: aim.target.path_and_query,
                guard,
                options,
                introduction: self.introduction(),
            },
            upgrade,
            content: None,
            key,
            mono: self.arrival.mono,
        }
    }

    /// As cache.config has it for the URL that the rules of remap.config made.
    fn policy(&self, method: &Method, target: &TargetUrl) -> Arc<CachePolicy> {
        let asked = Asked {
            method: method.as_str(),
            client: self.arrival.peer.ip(),
            target,
        };
        let base = &self.snapshot.policy;
        let ruled = self.snapshot.cache_rules.policy(base, &asked);
        let permitted = self.snapshot.records.cache_permit_pinning != 0;
        ruled.map_or_else(
            || Arc::clone(base),
            |mut policy| {
                policy.pin = policy.pin.filter(|_| permitted);
                Arc::new(policy)
            },
        )
    }

    /// CONNECT is forwarding, to a port that is meant for it, where no rule is
    /// required (RFC 9110 9.3.6).
    fn tunnel(&self, head: &RequestHead, authority: &Authority) -> Step {
        let snapshot = self.snapshot;
        let client = self.client(head, Mode::Forward);
        if !snapshot.ip_allow.allows_client(&client) {
            return Step::Answer(Answer::AccessDenied);
        }
        let open = snapshot.records.url_remap_remap_required == 0
            && snapshot.connect_ports.allow(authority.port)
            && snapshot.forward.allows(&client);
        if !open {
            return Step::Answer(Answer::TunnelForbidden);
        }
        let upstream = Upstream {
            place: Place::http(&authority.host, authority.port),
            path_and_query: String::new(),
            guard: Some(self.guard(&head.method, authority.port)),
            options: None,
            introduction: self.introduction(),
        };
        Step::Tunnel(upstream)
    }

    fn introduction(&self) -> Option<Introduction> {
        let version = self.snapshot.records.http_proxy_protocol_out;
        introduction::of(version, self.arrival.peer)
    }

    fn guard(&self, method: &Method, port: u16) -> AddressGuard {
        forward::guard(self.snapshot, self.arrival.own, method, port)
    }

    fn client<'h>(&self, head: &'h RequestHead, mode: Mode) -> Client<'h> {
        let peer = self.arrival.peer;
        let relayed = forward::is_relayed(peer, &head.headers);
        let much = mode == Mode::Forward || !peer.is_known;
        Client::new(peer.ip(), head.method.as_str()).relayed(relayed, much)
    }
}

/// Where a request is to go, by whose choice.
struct Aim {
    place: Place,
    target: TargetUrl,
    mode: Mode,
}

fn is_generated(rule: &CompiledRule) -> bool {
    let mut plugins = rule.plugins().iter();
    plugins.any(|used| used.plugin == Plugin::Generator)
}
