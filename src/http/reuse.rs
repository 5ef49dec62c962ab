//! Whether a stored response may answer a request without asking the origin
//! (RFC 9111 4, 4.2.4, 5.2.1; RFC 5861).

use super::cache_control::{MaxStale, RequestDirectives};
use super::freshness::{Lifetime, LifetimeSource, current_age};
use super::policy::{CachePolicy, WhenToRevalidate};
use crate::base::clock::WallTime;

/// What reuse depends on, of a stored response. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// When the response, or the 304 that last confirmed it, was received.
    pub response_time: WallTime,
    /// Its age then.
    pub age_at_receipt: u64,
    /// Its lifetime, bounded by policy when it was stored.
    pub lifetime: Lifetime,
    /// no-cache without field names: never reused unasked.
    pub no_cache: bool,
    /// must-revalidate or proxy-revalidate: never reused stale.
    pub must_revalidate: bool,
    /// s-maxage was there, which implies proxy-revalidate (RFC 9111 5.2.2.10).
    pub s_maxage: bool,
    /// immutable: while fresh, only a demand of the client's makes us ask
    /// (RFC 8246 2).
    pub immutable: bool,
    /// stale-while-revalidate.
    pub stale_while_revalidate: Option<u64>,
    /// stale-if-error.
    pub stale_if_error: Option<u64>,
}

impl Facts {
    /// The same as the rules of cache.config have them, whenever it was stored:
    /// with `ttl-in-cache` only the time since the receipt counts, and
    /// no-cache does not.
    #[must_use]
    pub fn under(&self, policy: &CachePolicy) -> Self {
        let mut facts = *self;
        if let Some(secs) = policy.ttl {
            facts.lifetime.secs = secs;
            facts.age_at_receipt = 0;
            facts.no_cache = false;
        }
        let cap = policy.revalidate_after.unwrap_or(u64::MAX);
        facts.lifetime.secs = facts.lifetime.secs.min(cap);
        facts
    }

    /// Seconds of age at `now`.
    #[must_use]
    pub const fn age(&self, now: WallTime) -> u64 {
        current_age(self.age_at_receipt, self.response_time, now)
    }

    /// Seconds of freshness left at `now`; 0 when stale.
    #[must_use]
    pub const fn ttl(&self, now: WallTime) -> u64 {
        self.lifetime.secs.saturating_sub(self.age(now))
    }

    /// Seconds past the lifetime at `now`; 0 when fresh, and in the first
    /// second of staleness.
    #[must_use]
    pub const fn staleness(&self, now: WallTime) -> u64 {
        self.age(now).saturating_sub(self.lifetime.secs)
    }

    /// Whether the lifetime is above the age (RFC 9111 4.2).
    #[must_use]
    pub const fn is_fresh(&self, now: WallTime) -> bool {
        self.ttl(now) > 0
    }

    /// Whether the response forbids reuse when stale (RFC 9111 4.2.4). That
    /// s-maxage forbids it is lifted by a stale-* directive of the response
    /// itself, as origins mean it.
    #[must_use]
    pub const fn forbids_stale(&self) -> bool {
        let says_stale = self.stale_while_revalidate.is_some() || self.stale_if_error.is_some();
        self.no_cache || self.must_revalidate || (self.s_maxage && !says_stale)
    }
}

/// How the client came to the origin it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By a rule with a literal target: we stand for the origin.
    Reverse,
    /// The client chose the origin: we stand for the client.
    Forward,
}

/// What reuse depends on, of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReuseRequest {
    /// Its Cache-Control.
    pub directives: RequestDirectives,
    /// Whether it has If-Modified-Since.
    pub has_if_modified_since: bool,
    /// How it came.
    pub mode: Mode,
    /// A random number of its own, for early refreshes; any where they are off.
    pub draw: u32,
}

/// Why a stored response can't be reused as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its lifetime is over.
    Expired,
    /// Its no-cache (RFC 9111 5.2.2.4).
    NoCache,
    /// The request's no-cache (5.2.1.4).
    RequestNoCache,
    /// The request's max-age (5.2.1.1).
    RequestMaxAge,
    /// The request's min-fresh (5.2.1.3).
    RequestMinFresh,
    /// `when_to_revalidate`.
    Policy,
}

/// What to do with a stored response that the request selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Serve it: it is fresh.
    Fresh,
    /// Serve it: it is fresh, and refresh it meanwhile, before it expires
    /// ([`super::early`]).
    FreshForNow,
    /// Serve it: it is stale, and the request's max-stale takes it.
    StaleAccepted,
    /// Serve it, and revalidate it meanwhile (RFC 5861 3).
    StaleWhileRevalidate,
    /// Ask the origin first.
    Revalidate(Reason),
    /// Answer 504: the origin would have to be asked, and the request says
    /// only-if-cached (RFC 9111 5.2.1.7).
    OnlyIfCached(Reason),
}

impl Verdict {
    /// Whether the stored response is served without waiting for the origin.
    #[must_use]
    pub const fn serves(self) -> bool {
        matches!(
            self,
            Self::Fresh | Self::FreshForNow | Self::StaleAccepted | Self::StaleWhileRevalidate
        )
    }
}

/// Judges a stored response whose key and Vary match the request.
///
/// The request's no-cache and max-age count in forward mode, and in reverse
/// mode where the policy does not ignore them; max-stale, min-fresh and
/// only-if-cached count in both.
#[must_use]
pub fn judge(
    facts: &Facts,
    request: &ReuseRequest,
    policy: &CachePolicy,
    now: WallTime,
) -> Verdict {
    let facts = &facts.under(policy);
    let verdict = match demands(facts, request, policy, now) {
        Some(reason) => Verdict::Revalidate(reason),
        None if !counts_as_stale(facts, request, policy, now) => {
            fresh_verdict(facts, request, policy, now)
        }
        None => stale_verdict(facts, request, policy, now),
    };
    match verdict {
        Verdict::Revalidate(reason) if request.directives.only_if_cached => {
            Verdict::OnlyIfCached(reason)
        }
        Verdict::Fresh
        | Verdict::FreshForNow
        | Verdict::StaleAccepted
        | Verdict::StaleWhileRevalidate
        | Verdict::Revalidate(_)
        | Verdict::OnlyIfCached(_) => verdict,
    }
}

/// How an origin failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginFailure {
    /// No response came, or none that could be trusted.
    Silent,
    /// A response with a status that counts as a failure ([`is_failure`]).
    Status,
}

/// Whether a response may be served because the origin could not be asked or
/// answered with a failure (RFC 9111 4.2.4, RFC 5861 4).
///
/// The window past the lifetime is the response's stale-if-error, else the
/// request's, else the policy's `max_stale_age`, for a status of the origin's
/// at most `stale_on_status_age`.
#[must_use]
pub fn may_serve_on_error(
    facts: &Facts,
    (request, failure): (&RequestDirectives, OriginFailure),
    policy: &CachePolicy,
    now: WallTime,
) -> bool {
    let facts = facts.under(policy);
    let most = match failure {
        OriginFailure::Silent => policy.max_stale_age,
        OriginFailure::Status => policy.max_stale_age.min(policy.stale_on_status_age),
    };
    let by_policy = policy.stale_on_error.then_some(most);
    let window = facts
        .stale_if_error
        .or(request.stale_if_error)
        .or(by_policy);
    let may = window.is_some_and(|window| facts.staleness(now) <= window);
    may && !facts.forbids_stale()
}

/// Whether a response may be served stale while another request asks for it,
/// where the policy wants it so: as long as for a silent origin.
#[must_use]
pub fn may_serve_meanwhile(facts: &Facts, policy: &CachePolicy, now: WallTime) -> bool {
    !facts.forbids_stale() && facts.staleness(now) <= policy.max_stale_age
}

/// Whether a response with this status, got when revalidating, counts as the
/// failure that [`may_serve_on_error`] is for.
#[must_use]
pub fn is_failure(status: u16, policy: &CachePolicy) -> bool {
    policy.stale_on_error_statuses.contains(&status)
}

/// Whether a no-cache of the request makes the origin send the response anew,
/// so that it must not be asked to validate what is held
/// (`ims_on_client_no_cache` 0).
#[must_use]
pub fn wants_anew(request: &ReuseRequest, policy: &CachePolicy) -> bool {
    !policy.ims_on_client_no_cache && heeds_no_cache(request, policy)
}

/// What demands that the origin be asked whether or not the response is fresh.
fn demands(
    facts: &Facts,
    request: &ReuseRequest,
    policy: &CachePolicy,
    now: WallTime,
) -> Option<Reason> {
    let asked = &request.directives;
    let forward = request.mode == Mode::Forward;
    let obeys_max_age = forward || !policy.ignore_client_max_age;
    if facts.no_cache {
        return Some(Reason::NoCache);
    }
    if heeds_no_cache(request, policy) {
        return Some(Reason::RequestNoCache);
    }
    if obeys_max_age && exceeds_max_age(facts, asked, now) {
        return Some(Reason::RequestMaxAge);
    }
    let too_short = |min: u64| facts.ttl(now) < min;
    if asked.min_fresh.is_some_and(too_short) {
        return Some(Reason::RequestMinFresh);
    }
    None
}

/// In forward mode a client's no-cache counts, unless a rule of cache.config
/// says that it does not.
fn heeds_no_cache(request: &ReuseRequest, policy: &CachePolicy) -> bool {
    let heeded = request.mode == Mode::Forward || !policy.ignore_client_no_cache;
    request.directives.no_cache && heeded && !policy.never_client_no_cache
}

/// A request with max-stale takes a response past its max-age too, as long as
/// max-stale says so (RFC 9111 5.2.1.1).
fn exceeds_max_age(facts: &Facts, asked: &RequestDirectives, now: WallTime) -> bool {
    let Some(max_age) = asked.max_age else {
        return false;
    };
    let slack = match asked.max_stale {
        None => 0,
        Some(MaxStale::Any) => u64::MAX,
        Some(MaxStale::Within(secs)) => secs,
    };
    facts.age(now) > max_age.saturating_add(slack)
}

fn counts_as_stale(
    facts: &Facts,
    request: &ReuseRequest,
    policy: &CachePolicy,
    now: WallTime,
) -> bool {
    let expired = !facts.is_fresh(now);
    match policy.when_to_revalidate {
        WhenToRevalidate::Expired => expired,
        WhenToRevalidate::HeuristicIsStale => {
            expired || facts.lifetime.source == LifetimeSource::Heuristic
        }
        WhenToRevalidate::Always => true,
        WhenToRevalidate::Never => expired && facts.forbids_stale(),
        WhenToRevalidate::ExpiredOrClientIms => {
            expired || (request.has_if_modified_since && !facts.immutable)
        }
    }
}

/// only-if-cached makes nobody ask the origin.
fn fresh_verdict(
    facts: &Facts,
    request: &ReuseRequest,
    policy: &CachePolicy,
    now: WallTime,
) -> Verdict {
    let is_due = policy.early.is_due(facts, request.draw, now);
    if is_due && !request.directives.only_if_cached {
        Verdict::FreshForNow
    } else {
        Verdict::Fresh
    }
}

fn stale_verdict(
    facts: &Facts,
    request: &ReuseRequest,
    policy: &CachePolicy,
    now: WallTime,
) -> Verdict {
    if facts.is_fresh(now) {
        return Verdict::Revalidate(Reason::Policy);
    }
    if facts.forbids_stale() || policy.when_to_revalidate == WhenToRevalidate::Always {
        return Verdict::Revalidate(Reason::Expired);
    }
    let staleness = facts.staleness(now);
    let accepted = match request.directives.max_stale {
        None => false,
        Some(MaxStale::Any) => true,
        Some(MaxStale::Within(secs)) => staleness <= secs,
    };
    if accepted {
        return Verdict::StaleAccepted;
    }
    match facts.stale_while_revalidate {
        Some(window) if staleness <= window => Verdict::StaleWhileRevalidate,
        _ => Verdict::Revalidate(Reason::Expired),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::{HeaderMap, HeaderValue};

    const STORED: WallTime = WallTime::from_secs(1_796_040_000);

    /// A response with a lifetime of 100 s that was fresh out of the origin.
    const PLAIN: Facts = Facts {
        response_time: STORED,
        age_at_receipt: 0,
        lifetime: Lifetime {
            secs: 100,
            source: LifetimeSource::MaxAge,
        },
        no_cache: false,
        must_revalidate: false,
        s_maxage: false,
        immutable: false,
        stale_while_revalidate: None,
        stale_if_error: None,
    };

    fn at(secs: u64) -> WallTime {
        WallTime::from_secs(STORED.as_secs() + secs)
    }

    fn request(mode: Mode, cache_control: &'static str) -> ReuseRequest {
        let mut headers = HeaderMap::new();
        if !cache_control.is_empty() {
            headers.insert("cache-control", HeaderValue::from_static(cache_control));
        }
        ReuseRequest {
            directives: RequestDirectives::of(&headers),
            has_if_modified_since: false,
            mode,
            draw: 0,
        }
    }

    fn forward(facts: &Facts, cache_control: &'static str, secs: u64) -> Verdict {
        let request = request(Mode::Forward, cache_control);
        judge(facts, &request, &CachePolicy::default(), at(secs))
    }

    fn reverse(facts: &Facts, cache_control: &'static str, secs: u64) -> Verdict {
        let request = request(Mode::Reverse, cache_control);
        judge(facts, &request, &CachePolicy::default(), at(secs))
    }

    const EXPIRED: Verdict = Verdict::Revalidate(Reason::Expired);

    #[test]
    fn fresh_until_the_age_reaches_the_lifetime_rfc_9111_4_2() {
        assert_eq!(reverse(&PLAIN, "", 99), Verdict::Fresh);
        assert_eq!(reverse(&PLAIN, "", 100), EXPIRED);
        let almost = WallTime::from_millis(at(99).as_millis() + 999);
        assert!(PLAIN.is_fresh(almost));
        assert_eq!((PLAIN.ttl(at(40)), PLAIN.age(at(40))), (60, 40));
        let aged = Facts {
            age_at_receipt: 90,
            ..PLAIN
        };
        assert_eq!(reverse(&aged, "", 9), Verdict::Fresh);
        assert_eq!(reverse(&aged, "", 10), EXPIRED);
        let before = judge(
            &PLAIN,
            &request(Mode::Reverse, ""),
            &CachePolicy::default(),
            WallTime::default(),
        );
        assert_eq!(before, Verdict::Fresh, "a clock that steps back");
    }

    #[test]
    fn no_cache_of_the_response_always_asks_rfc_9111_5_2_2_4() {
        let facts = Facts {
            no_cache: true,
            ..PLAIN
        };
        let asked = Verdict::Revalidate(Reason::NoCache);
        assert_eq!(reverse(&facts, "", 0), asked);
        assert_eq!(forward(&facts, "max-stale", 0), asked);
    }

    #[test]
    fn no_cache_and_max_age_of_a_client_count_by_mode() {
        assert_eq!(reverse(&PLAIN, "no-cache", 1), Verdict::Fresh);
        assert_eq!(reverse(&PLAIN, "max-age=0", 1), Verdict::Fresh);
        let no_cache = Verdict::Revalidate(Reason::RequestNoCache);
        let max_age = Verdict::Revalidate(Reason::RequestMaxAge);
        assert_eq!(forward(&PLAIN, "no-cache", 1), no_cache);
        assert_eq!(forward(&PLAIN, "max-age=0", 1), max_age);
        assert_eq!(forward(&PLAIN, "max-age=10", 10), Verdict::Fresh);
        assert_eq!(forward(&PLAIN, "max-age=10", 11), max_age);
        assert_eq!(
            forward(&PLAIN, "max-age=10, max-stale=5", 15),
            Verdict::Fresh
        );
        assert_eq!(forward(&PLAIN, "max-age=10, max-stale=5", 16), max_age);
        let obeying = CachePolicy {
            ignore_client_no_cache: false,
            ignore_client_max_age: false,
            ..CachePolicy::default()
        };
        for (line, verdict) in [("no-cache", no_cache), ("max-age=0", max_age)] {
            let judged = judge(&PLAIN, &request(Mode::Reverse, line), &obeying, at(1));
            assert_eq!(judged, verdict, "{line}");
        }
    }

    #[test]
    fn min_fresh_max_stale_and_only_if_cached_count_in_both_modes() {
        for judge in [forward, reverse] {
            let min_fresh = Verdict::Revalidate(Reason::RequestMinFresh);
            assert_eq!(judge(&PLAIN, "min-fresh=60", 40), Verdict::Fresh);
            assert_eq!(judge(&PLAIN, "min-fresh=61", 40), min_fresh);
            assert_eq!(judge(&PLAIN, "max-stale=10", 110), Verdict::StaleAccepted);
            assert_eq!(judge(&PLAIN, "max-stale=10", 111), EXPIRED);
            assert_eq!(judge(&PLAIN, "max-stale", 100_000), Verdict::StaleAccepted);
            assert_eq!(judge(&PLAIN, "only-if-cached", 99), Verdict::Fresh);
            let timeout = Verdict::OnlyIfCached(Reason::Expired);
            assert_eq!(judge(&PLAIN, "only-if-cached", 100), timeout);
            let both = judge(&PLAIN, "only-if-cached, max-stale", 100);
            assert_eq!(both, Verdict::StaleAccepted);
        }
    }

    #[test]
    fn a_response_may_forbid_reuse_when_stale_rfc_9111_4_2_4() {
        let must = Facts {
            must_revalidate: true,
            ..PLAIN
        };
        let shared = Facts {
            s_maxage: true,
            ..PLAIN
        };
        for facts in [must, shared] {
            assert_eq!(forward(&facts, "max-stale", 99), Verdict::Fresh);
            assert_eq!(forward(&facts, "max-stale", 100), EXPIRED);
            assert!(!on_error(&facts, 100));
        }
        let meant = Facts {
            stale_while_revalidate: Some(10),
            ..shared
        };
        assert_eq!(forward(&meant, "", 110), Verdict::StaleWhileRevalidate);
        let both = Facts {
            must_revalidate: true,
            ..meant
        };
        assert_eq!(forward(&both, "", 110), EXPIRED);
    }

    #[test]
    fn stale_while_revalidate_has_its_window_rfc_5861_3() {
        let facts = Facts {
            stale_while_revalidate: Some(10),
            ..PLAIN
        };
        assert_eq!(reverse(&facts, "", 99), Verdict::Fresh);
        assert_eq!(reverse(&facts, "", 100), Verdict::StaleWhileRevalidate);
        assert_eq!(reverse(&facts, "", 110), Verdict::StaleWhileRevalidate);
        assert_eq!(reverse(&facts, "", 111), EXPIRED);
        let asked = Verdict::Revalidate(Reason::RequestNoCache);
        assert_eq!(forward(&facts, "no-cache", 105), asked);
    }

    fn on_error(facts: &Facts, secs: u64) -> bool {
        on_failure(facts, OriginFailure::Silent, &CachePolicy::default(), secs)
    }

    fn on_failure(facts: &Facts, how: OriginFailure, policy: &CachePolicy, secs: u64) -> bool {
        let none = RequestDirectives::default();
        may_serve_on_error(facts, (&none, how), policy, at(secs))
    }

    #[test]
    fn an_error_response_has_a_window_of_its_own_measured_from_the_expiry() {
        let policy = CachePolicy {
            stale_on_status_age: 10,
            ..CachePolicy::default()
        };
        let of = |how, secs| on_failure(&PLAIN, how, &policy, secs);
        assert!(of(OriginFailure::Status, 110) && !of(OriginFailure::Status, 111));
        assert!(of(OriginFailure::Silent, 111));
        let bounded = CachePolicy {
            max_stale_age: 5,
            ..policy.clone()
        };
        for how in [OriginFailure::Status, OriginFailure::Silent] {
            assert!(on_failure(&PLAIN, how, &bounded, 105), "{how:?}");
            assert!(!on_failure(&PLAIN, how, &bounded, 106), "{how:?}");
        }
        let named = Facts {
            stale_if_error: Some(20),
            ..PLAIN
        };
        assert!(on_failure(&named, OriginFailure::Status, &policy, 120));
        assert!(!on_failure(&named, OriginFailure::Status, &policy, 121));
    }

    #[test]
    fn stale_if_error_has_its_window_or_the_policys_rfc_5861_4() {
        assert!(on_error(&PLAIN, 100 + 86_400));
        assert!(!on_error(&PLAIN, 100 + 86_401));
        let named = Facts {
            stale_if_error: Some(5),
            ..PLAIN
        };
        assert!(on_error(&named, 105));
        assert!(!on_error(&named, 106));
        let asked = RequestDirectives {
            stale_if_error: Some(7),
            ..RequestDirectives::default()
        };
        let policy = CachePolicy {
            stale_on_error: false,
            ..CachePolicy::default()
        };
        assert!(may_serve_on_error(
            &PLAIN,
            (&asked, OriginFailure::Silent),
            &policy,
            at(107)
        ));
        assert!(!may_serve_on_error(
            &PLAIN,
            (&asked, OriginFailure::Silent),
            &policy,
            at(108)
        ));
        let none = RequestDirectives::default();
        assert!(!may_serve_on_error(
            &PLAIN,
            (&none, OriginFailure::Silent),
            &policy,
            at(100)
        ));
        assert!(is_failure(503, &policy));
        assert!(!is_failure(404, &policy));
    }

    #[test]
    fn rules_of_cache_config_hold_for_what_is_stored_already() {
        let aged = Facts {
            age_at_receipt: 90,
            no_cache: true,
            ..PLAIN
        };
        let judged = |policy: &CachePolicy, line, secs| {
            judge(&aged, &request(Mode::Forward, line), policy, at(secs))
        };
        let ttl = CachePolicy {
            ttl: Some(1000),
            never_client_no_cache: true,
            ..CachePolicy::default()
        };
        assert_eq!(judged(&ttl, "no-cache", 999), Verdict::Fresh);
        assert_eq!(judged(&ttl, "", 1000), EXPIRED);
        let capped = CachePolicy {
            revalidate_after: Some(50),
            ..ttl
        };
        assert_eq!(judged(&capped, "", 49), Verdict::Fresh);
        assert_eq!(judged(&capped, "", 50), EXPIRED);
        let none = RequestDirectives::default();
        let strict = CachePolicy {
            max_stale_age: 10,
            ..capped
        };
        let silent = (&none, OriginFailure::Silent);
        assert!(may_serve_on_error(&aged, silent, &strict, at(60)));
        assert!(!may_serve_on_error(&aged, silent, &strict, at(61)));
    }

    #[test]
    fn when_to_revalidate_moves_the_line() {
        let heuristic = Facts {
            lifetime: Lifetime {
                secs: 100,
                source: LifetimeSource::Heuristic,
            },
            ..PLAIN
        };
        let policy = Verdict::Revalidate(Reason::Policy);
        let rows = [
            (WhenToRevalidate::HeuristicIsStale, heuristic, 1, policy),
            (WhenToRevalidate::HeuristicIsStale, PLAIN, 1, Verdict::Fresh),
            (WhenToRevalidate::Always, PLAIN, 1, policy),
            (WhenToRevalidate::Always, PLAIN, 100, EXPIRED),
            (WhenToRevalidate::Never, PLAIN, 100_000, Verdict::Fresh),
            (
                WhenToRevalidate::Never,
                Facts {
                    must_revalidate: true,
                    ..PLAIN
                },
                100,
                EXPIRED,
            ),
            (WhenToRevalidate::ExpiredOrClientIms, PLAIN, 1, policy),
            (
                WhenToRevalidate::ExpiredOrClientIms,
                Facts {
                    immutable: true,
                    ..PLAIN
                },
                1,
                Verdict::Fresh,
            ),
        ];
        for (when, facts, secs, verdict) in rows {
            let policy = CachePolicy {
                when_to_revalidate: when,
                ..CachePolicy::default()
            };
            let request = ReuseRequest {
                has_if_modified_since: true,
                ..request(Mode::Reverse, "")
            };
            assert_eq!(
                judge(&facts, &request, &policy, at(secs)),
                verdict,
                "{when:?}"
            );
        }
    }
}
