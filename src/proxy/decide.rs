//! What to do with a request, given what the cache holds: pure.

use super::cache_status::Forwarded;
use super::outcome::Outcome;
use crate::base::clock::WallTime;
use crate::cache::{Miss, Tier};
use crate::http::policy::CachePolicy;
use crate::http::reuse::{self, Facts, Reason, ReuseRequest, Verdict};
use crate::http::storable::NotStorable;

/// What the cache holds for a request.
#[derive(Clone, Copy, Debug)]
pub enum Held<'a> {
    /// A response that the request selects.
    Object {
        /// What its reuse depends on.
        facts: &'a Facts,
        /// Where it lies.
        tier: Tier,
        /// It may be older than what was stored last.
        suspect: bool,
    },
    /// Nothing that could be used.
    Nothing {
        /// Why.
        miss: Miss,
        /// There are alternates, but not for this request.
        varies: bool,
    },
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Serve what is held.
    Serve(Outcome),
    /// Serve what is held, and revalidate it meanwhile.
    ServeAndAsk(Outcome),
    /// Ask the origin whether what is held still holds.
    Revalidate(Reason),
    /// Ask the origin for it.
    Fetch {
        /// What the transaction ends in if all goes well.
        outcome: Outcome,
        /// Why, for Cache-Status.
        why: Forwarded,
    },
    /// Nothing fit is held and the origin may not be asked: 504
    /// (RFC 9111 5.2.1.7).
    OnlyIfCached,
}

/// Decides.
#[must_use]
pub fn decide(
    held: &Held<'_>,
    request: &ReuseRequest,
    policy: &CachePolicy,
    now: WallTime,
) -> Decision {
    let (facts, tier) = match held {
        Held::Nothing { .. } if request.directives.only_if_cached => return Decision::OnlyIfCached,
        Held::Nothing { miss, varies } => return fetch(*miss, *varies),
        Held::Object { suspect: true, .. } if request.directives.only_if_cached => {
            return Decision::OnlyIfCached;
        }
        Held::Object { suspect: true, .. } => return Decision::Revalidate(Reason::Expired),
        Held::Object { facts, tier, .. } => (facts, tier),
    };
    match reuse::judge(facts, request, policy, now) {
        Verdict::Fresh => Decision::Serve(hit(*tier)),
        Verdict::FreshForNow => Decision::ServeAndAsk(hit(*tier)),
        Verdict::StaleAccepted => Decision::Serve(Outcome::StaleAccepted),
        Verdict::StaleWhileRevalidate => Decision::ServeAndAsk(Outcome::StaleWhileRevalidate),
        Verdict::Revalidate(reason) => Decision::Revalidate(reason),
        Verdict::OnlyIfCached(_) => Decision::OnlyIfCached,
    }
}

const fn fetch(miss: Miss, varies: bool) -> Decision {
    let outcome = match miss {
        Miss::ReadError | Miss::Overtaken => Outcome::MissReadError,
        Miss::NotReady | Miss::NoSpan => Outcome::MissCacheOff,
        Miss::Absent | Miss::Invalidated => Outcome::MissCold,
    };
    let why = if varies {
        Forwarded::VaryMiss
    } else {
        Forwarded::UriMiss
    };
    Decision::Fetch { outcome, why }
}

/// The outcome of a fresh hit.
#[must_use]
pub const fn hit(tier: Tier) -> Outcome {
    match tier {
        Tier::Ram => Outcome::HitRam,
        Tier::Fast => Outcome::HitFast,
        Tier::Capacity => Outcome::HitCapacity,
    }
}

/// The outcome when the origin sent another representation.
#[must_use]
pub const fn replaced(reason: Reason, had_validator: bool) -> Outcome {
    match reason {
        Reason::RequestNoCache | Reason::RequestMaxAge | Reason::RequestMinFresh => {
            Outcome::MissNoCache
        }
        Reason::Expired | Reason::NoCache | Reason::Policy if had_validator => Outcome::MissChanged,
        Reason::Expired | Reason::NoCache | Reason::Policy => Outcome::MissExpired,
    }
}

/// Why a request for something held went to the origin.
#[must_use]
pub const fn forwarded(reason: Reason) -> Forwarded {
    match reason {
        Reason::RequestNoCache | Reason::RequestMaxAge | Reason::RequestMinFresh => {
            Forwarded::Request
        }
        Reason::Expired | Reason::NoCache | Reason::Policy => Forwarded::Stale,
    }
}

/// The outcome of a response that is not stored.
#[must_use]
pub const fn uncacheable(reason: NotStorable) -> Outcome {
    match reason {
        NotStorable::CacheOff | NotStorable::Dynamic => Outcome::MissCacheOff,
        NotStorable::Method => Outcome::MissMethod,
        NotStorable::RequestNoStore => Outcome::MissNoStore,
        NotStorable::Status(_) | NotStorable::MustUnderstand(_) => Outcome::UncacheableStatus,
        NotStorable::NoStore => Outcome::UncacheableNoStore,
        NotStorable::Private => Outcome::UncacheablePrivate,
        NotStorable::Authorization | NotStorable::WwwAuthenticate => {
            Outcome::UncacheableAuthorization
        }
        NotStorable::Cookie | NotStorable::SetCookie => Outcome::UncacheableCookie,
        NotStorable::VaryStar => Outcome::UncacheableVary,
        NotStorable::RequiredHeaders | NotStorable::NoLifetime => Outcome::UncacheableLifetime,
    }
}

/// Whether the next request for the URL will not be cacheable either: the
/// reason lies in the response, not in this request.
#[must_use]
pub const fn will_recur(reason: NotStorable) -> bool {
    !matches!(
        reason,
        NotStorable::RequestNoStore | NotStorable::Authorization | NotStorable::Method
    )
}

/// What a request has that finds another one fetching what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// Nothing.
    Nothing,
    /// A stored response that may not be served.
    Unfit,
    /// A stored response that may be served, stale as it is.
    Stale,
}

/// What a request does that finds another one fetching what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBusy {
    /// It shares that fetch.
    Follow,
    /// It asks the origin itself, and nothing is stored of it.
    Ask,
    /// It is served what is held.
    ServeStale,
    /// It is answered 502.
    Refuse,
}

/// `http.cache.open_write_fail_action`, of which another request's fetch is the
/// open write.
#[must_use]
pub const fn when_busy(action: i64, has: Meanwhile) -> WhenBusy {
    match (action, has) {
        (2 | 3 | 6, Meanwhile::Stale) => WhenBusy::ServeStale,
        (1 | 3, Meanwhile::Nothing) | (4, _) => WhenBusy::Refuse,
        (0..=3, _) => WhenBusy::Ask,
        _ => WhenBusy::Follow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::cache_control::RequestDirectives;
    use crate::http::freshness::{Lifetime, LifetimeSource};
    use crate::http::reuse::Mode;
    use http::{HeaderMap, HeaderValue};

    const NOW: WallTime = WallTime::from_secs(1000);

    fn facts(age: u64) -> Facts {
        Facts {
            response_time: NOW,
            age_at_receipt: age,
            lifetime: Lifetime {
                secs: 60,
                source: LifetimeSource::MaxAge,
            },
            no_cache: false,
            must_revalidate: false,
            s_maxage: false,
            immutable: false,
            stale_while_revalidate: None,
            stale_if_error: None,
        }
    }

    fn decided(held: &Held<'_>, cache_control: &'static str) -> Decision {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static(cache_control);
        headers.insert(http::header::CACHE_CONTROL, value);
        let request = ReuseRequest {
            directives: RequestDirectives::of(&headers),
            has_if_modified_since: false,
            mode: Mode::Forward,
            draw: 0,
        };
        decide(held, &request, &CachePolicy::default(), NOW)
    }

    fn object(facts: &Facts, suspect: bool) -> Held<'_> {
        Held::Object {
            facts,
            tier: Tier::Fast,
            suspect,
        }
    }

    #[test]
    fn what_is_fresh_is_served_and_counted_where_it_lies() {
        let decision = decided(&object(&facts(10), false), "");
        assert_eq!(decision, Decision::Serve(Outcome::HitFast));
    }

    #[test]
    fn what_may_be_old_is_never_served_unasked() {
        let decision = decided(&object(&facts(10), true), "max-stale");
        assert_eq!(decision, Decision::Revalidate(Reason::Expired));
    }

    #[test]
    fn stale_is_revalidated_or_served_meanwhile() {
        let old = facts(70);
        let plain = decided(&object(&old, false), "");
        assert_eq!(plain, Decision::Revalidate(Reason::Expired));
        let meanwhile = Facts {
            stale_while_revalidate: Some(30),
            ..old
        };
        let decision = decided(&object(&meanwhile, false), "");
        assert_eq!(
            decision,
            Decision::ServeAndAsk(Outcome::StaleWhileRevalidate)
        );
    }

    #[test]
    fn only_if_cached_never_asks_the_origin() {
        let nothing = Held::Nothing {
            miss: Miss::Absent,
            varies: false,
        };
        assert_eq!(decided(&nothing, "only-if-cached"), Decision::OnlyIfCached);
        let old = decided(&object(&facts(70), false), "only-if-cached");
        assert_eq!(old, Decision::OnlyIfCached);
        let suspect = decided(&object(&facts(10), true), "only-if-cached");
        assert_eq!(suspect, Decision::OnlyIfCached);
    }

    #[test]
    fn an_unreadable_copy_is_a_miss_of_its_own_kind() {
        let broken = Held::Nothing {
            miss: Miss::ReadError,
            varies: true,
        };
        let expected = Decision::Fetch {
            outcome: Outcome::MissReadError,
            why: Forwarded::VaryMiss,
        };
        assert_eq!(decided(&broken, ""), expected);
    }

    #[test]
    fn a_request_behind_another_does_what_the_record_says() {
        use WhenBusy::{Ask, Follow, Refuse, ServeStale};
        let rows = [
            (0, [Ask, Ask, Ask]),
            (1, [Refuse, Ask, Ask]),
            (2, [Ask, Ask, ServeStale]),
            (3, [Refuse, Ask, ServeStale]),
            (4, [Refuse, Refuse, Refuse]),
            (5, [Follow, Follow, Follow]),
            (6, [Follow, Follow, ServeStale]),
        ];
        for (action, expected) in rows {
            let has = [Meanwhile::Nothing, Meanwhile::Unfit, Meanwhile::Stale];
            assert_eq!(has.map(|has| when_busy(action, has)), expected, "{action}");
        }
    }

    #[test]
    fn what_lies_in_one_request_is_not_held_against_the_url() {
        assert!(!will_recur(NotStorable::Authorization));
        assert!(!will_recur(NotStorable::RequestNoStore));
        assert!(will_recur(NotStorable::Private));
    }
}
