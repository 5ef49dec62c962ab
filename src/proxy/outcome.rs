//! How a transaction ended: one outcome each, and all that follows from it.
//!
//! The outcome is the log's `%<outcome>`, its squid code (`%<crc>`), its hit
//! or miss (`%<chm>`) and its metric cell, from one table. Completed requests
//! are the sum of the outcome cells; there is no counter of their own.

mod counters;

use super::answer::Answer;
use crate::metrics::{Cells, Metric};

macro_rules! outcomes {
    ($( $(#[doc = $help:literal])+ $variant:ident = $label:literal, $crc:literal, $chm:literal, $cell:ident; )+) => {
        /// The one way in which a transaction ended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Outcome {
            $( $(#[doc = $help])+ $variant, )+
        }

        impl Outcome {
            /// Every outcome, in the order of the table.
            pub const ALL: &[Self] = &[$( Self::$variant, )+];

            /// The name in the log (`%<outcome>`).
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $( Self::$variant => $label, )+ }
            }

            /// Squid's cache result code (`%<crc>`).
            #[must_use]
            pub const fn crc(self) -> &'static str {
                match self { $( Self::$variant => $crc, )+ }
            }

            /// ATS's hit or miss code (`%<chm>`).
            #[must_use]
            pub const fn chm(self) -> &'static str {
                match self { $( Self::$variant => $chm, )+ }
            }

            /// The cell that counts the requests that ended so.
            #[must_use]
            pub const fn cell(self) -> Metric {
                match self { $( Self::$variant => Metric::$cell, )+ }
            }
        }
    };
}

outcomes! {
    /// Fresh in the RAM cache.
    HitRam = "hit_ram", "TCP_MEM_HIT", "HIT_RAM", OutcomeHitRam;
    /// Fresh in the fast tier.
    HitFast = "hit_ssd", "TCP_HIT", "HIT_SSD", OutcomeHitFast;
    /// Fresh in the capacity tier.
    HitCapacity = "hit_hdd", "TCP_HIT", "HIT_DISK", OutcomeHitCapacity;
    /// Fresh in the cache, and the client's own copy is current: 304 (RFC 9110 13).
    HitNotModified = "hit_ims", "TCP_IMS_HIT", "HIT", OutcomeHitNotModified;
    /// Read while another request's fill was writing.
    HitWhileWriting = "hit_rww", "TCP_CF_HIT", "HIT_RWW", OutcomeHitWhileWriting;
    /// Stale, and the origin said 304 (RFC 9111 4.3.3).
    HitRevalidated = "hit_revalidated", "TCP_REFRESH_HIT", "HIT", OutcomeHitRevalidated;
    /// Stale, served while a revalidation runs (RFC 5861 3).
    StaleWhileRevalidate = "stale_while_revalidate", "TCP_HIT", "HIT", OutcomeStaleWhileRevalidate;
    /// Stale, served because the origin could not be asked (RFC 9111 4.2.4).
    StaleOriginFailed = "stale_origin_failed", "TCP_REFRESH_FAIL_HIT", "HIT", OutcomeStaleOriginFailed;
    /// Stale, served because the origin answered with an error (RFC 5861 4).
    StaleOriginError = "stale_origin_error", "TCP_REFRESH_FAIL_HIT", "HIT", OutcomeStaleOriginError;
    /// Stale, and the client's max-stale takes it (RFC 9111 5.2.1.2).
    StaleAccepted = "stale_accepted", "TCP_HIT", "HIT", OutcomeStaleAccepted;
    /// Not in the cache; the response was fetched for it.
    MissCold = "miss_cold", "TCP_MISS", "MISS", OutcomeMissCold;
    /// In the cache in part; what was missing was fetched for it.
    MissPartial = "miss_partial", "TCP_MISS", "MISS", OutcomeMissPartial;
    /// Stale, and the origin had another representation.
    MissChanged = "miss_changed", "TCP_REFRESH_MISS", "MISS_PRE_EXPIRED", OutcomeMissChanged;
    /// Stale without a validator, fetched again.
    MissExpired = "miss_expired", "TCP_EXPIRED_MISS", "MISS_PRE_EXPIRED", OutcomeMissExpired;
    /// In the cache, but it could not be read.
    MissReadError = "miss_read_error", "TCP_SWAPFAIL_MISS", "MISS_ERROR", OutcomeMissReadError;
    /// The request demanded a fresh response (RFC 9111 5.2.1.4).
    MissNoCache = "miss_no_cache", "TCP_CLIENT_REFRESH_MISS", "MISS_PRAGMA_NOCACHE", OutcomeMissNoCache;
    /// The request forbade storing (RFC 9111 5.2.1.5).
    MissNoStore = "miss_no_store", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeMissNoStore;
    /// The method is not answered from a cache.
    MissMethod = "miss_method", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeMissMethod;
    /// A range of something not held, passed through.
    MissRange = "miss_range", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeMissRange;
    /// Caching is off, or not ready yet.
    MissCacheOff = "miss_cache_off", "TCP_MISS", "MISS_CACHE_BYPASS", OutcomeMissCacheOff;
    /// The response said no-store (RFC 9111 5.2.2.5).
    UncacheableNoStore = "uncacheable_no_store", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeUncacheableNoStore;
    /// The response said private (RFC 9111 5.2.2.7).
    UncacheablePrivate = "uncacheable_private", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeUncacheablePrivate;
    /// The status may not be stored, or not without explicit freshness.
    UncacheableStatus = "uncacheable_status", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeUncacheableStatus;
    /// Neither a lifetime nor a validator: nothing to reuse it by.
    UncacheableLifetime = "uncacheable_lifetime", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeUncacheableLifetime;
    /// Set-Cookie or Cookie, and the policy refuses these.
    UncacheableCookie = "uncacheable_cookie", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeUncacheableCookie;
    /// `Vary: *` matches no other request (RFC 9110 12.5.5).
    UncacheableVary = "uncacheable_vary", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeUncacheableVary;
    /// The request had Authorization and nothing allows storing (RFC 9111 3.5).
    UncacheableAuthorization = "uncacheable_authorization", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeUncacheableAuthorization;
    /// Not stored for a reason of policy, of size, or of the cache itself.
    UncacheableOther = "uncacheable_other", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeUncacheableOther;
    /// Known to be uncacheable from a response a while ago (hit-for-miss).
    UncacheableRemembered = "uncacheable_remembered", "TCP_MISS", "MISS_PASS", OutcomeUncacheableRemembered;
    /// Refused by a filter or by ip_allow.
    Denied = "denied", "TCP_DENIED", "INVALID_CODE", OutcomeDenied;
    /// Refused: forwarding is not allowed for this client or address.
    DeniedForward = "denied_forward", "ERR_PROXY_DENIED", "INVALID_CODE", OutcomeDeniedForward;
    /// The client went away before its response was whole.
    ClientAbort = "client_abort", "ERR_CLIENT_ABORT", "INVALID_CODE", OutcomeClientAbort;
    /// The request's body broke off, stalled, or was malformed.
    ClientReadError = "client_read_error", "ERR_CLIENT_READ_ERROR", "INVALID_CODE", OutcomeClientReadError;
    /// The origin's name has no address.
    OriginDns = "origin_dns", "ERR_DNS_FAIL", "MISS_ERROR", OutcomeOriginDns;
    /// No connection to the origin, or no slot for one.
    OriginConnect = "origin_connect", "ERR_CONNECT_FAIL", "MISS_ERROR", OutcomeOriginConnect;
    /// The origin stalled before or in its response.
    OriginTimeout = "origin_timeout", "ERR_READ_TIMEOUT", "MISS_ERROR", OutcomeOriginTimeout;
    /// The origin closed before its response was whole.
    OriginClosed = "origin_closed", "ERR_READ_ERROR", "MISS_ERROR", OutcomeOriginClosed;
    /// The origin's response breaks RFC 9112; nothing of it is trusted.
    OriginMalformed = "origin_malformed", "ERR_UNKNOWN", "MISS_ERROR", OutcomeOriginMalformed;
    /// A CONNECT or Upgrade tunnel was opened.
    Tunnel = "tunnel", "TCP_MISS", "MISS_HTTP_NON_CACHE", OutcomeTunnel;
    /// A redirect rule answered.
    AnsweredRedirect = "answered_redirect", "TCP_HIT_REDIRECT", "INVALID_CODE", OutcomeAnsweredRedirect;
    /// No remap rule matched and one is required.
    AnsweredNoRule = "answered_no_rule", "ERR_INVALID_URL", "INVALID_CODE", OutcomeAnsweredNoRule;
    /// The request was malformed, ambiguous, or too large.
    AnsweredInvalid = "answered_invalid", "ERR_INVALID_REQ", "INVALID_CODE", OutcomeAnsweredInvalid;
    /// A method, version or expectation that is not served here.
    AnsweredUnsupported = "answered_unsupported", "ERR_UNSUP_REQ", "INVALID_CODE", OutcomeAnsweredUnsupported;
    /// Via names this server already.
    AnsweredLoop = "answered_loop", "ERR_LOOP_DETECTED", "INVALID_CODE", OutcomeAnsweredLoop;
    /// only-if-cached, and nothing fit to serve: 504 (RFC 9111 5.2.1.7).
    AnsweredOnlyIfCached = "answered_only_if_cached", "TCP_MISS", "MISS_ERROR", OutcomeAnsweredOnlyIfCached;
    /// PURGE was carried out, whether or not something was there.
    AnsweredPurged = "answered_purged", "TCP_MISS", "INVALID_CODE", OutcomeAnsweredPurged;
    /// PUSH was carried out: the enclosed response was stored, or might not be.
    AnsweredPushed = "answered_pushed", "TCP_MISS", "INVALID_CODE", OutcomeAnsweredPushed;
    /// TRACE or OPTIONS whose Max-Forwards ended here (RFC 9110 7.6.2).
    AnsweredOptions = "answered_options", "TCP_MISS", "INVALID_CODE", OutcomeAnsweredOptions;
    /// The proxy itself could not go on: draining, or out of a limit.
    AnsweredInternal = "answered_internal", "ERR_UNKNOWN", "INVALID_CODE", OutcomeAnsweredInternal;
}

impl Outcome {
    /// Counts one request: in the outcome's own cell, and in each of ATS's
    /// counters that gather it with others. ATS tells conditional requests
    /// apart where nothing was stored.
    pub fn count(self, cells: &Cells, is_conditional: bool) {
        cells.add(self.cell(), 1);
        let gathered = counters::of(self, is_conditional);
        gathered.iter().for_each(|metric| cells.add(*metric, 1));
    }
}

/// How the response's transfer to the client ended (`%<pfsc>`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The last byte went out, and the connection may be kept.
    Whole,
    /// Cut off: the connection must be closed, without a clean end.
    Cut,
}

/// Whom the response was asked of (`%<phr>`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// Nobody: the cache or the proxy answered.
    #[default]
    None,
    /// The origin, named as the request to it named it.
    Direct(String),
}

/// What a transaction came to: what the log and the counters need to know.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The one outcome.
    pub outcome: Outcome,
    /// The status sent to the client; 0 when none was sent.
    pub status: u16,
    /// Bytes of the response's head sent, interim responses included.
    pub head_bytes: u64,
    /// Bytes of the response's body sent, framing included.
    pub body_bytes: u64,
    /// Whom it was asked of.
    pub route: Route,
    /// The response's `Content-Type`.
    pub content_type: Option<bytes::Bytes>,
    /// How the transfer ended.
    pub finish: Finish,
    /// Whether it was cut since the client took nothing for too long.
    pub has_stalled: bool,
    /// The answer that the caller is to send, where nothing was sent yet.
    pub unsent: Option<Answer>,
    /// What went wrong, in words for the client and the error log.
    pub detail: Option<Box<str>>,
}

impl Ended {
    /// A transaction that ended in `outcome` with `status`, nothing sent yet.
    #[must_use]
    pub const fn new(outcome: Outcome, status: u16) -> Self {
        Self {
            outcome,
            status,
            head_bytes: 0,
            body_bytes: 0,
            route: Route::None,
            content_type: None,
            finish: Finish::Whole,
            has_stalled: false,
            unsent: None,
            detail: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Registry;
    use std::collections::HashSet;

    #[test]
    fn each_outcome_has_a_label_and_a_cell_of_its_own() {
        let labels: HashSet<_> = Outcome::ALL.iter().map(|outcome| outcome.label()).collect();
        let cells: HashSet<_> = Outcome::ALL.iter().map(|outcome| outcome.cell()).collect();
        assert_eq!(labels.len(), Outcome::ALL.len());
        assert_eq!(cells.len(), Outcome::ALL.len());
    }

    #[test]
    fn a_ram_hit_counts_as_fresh_and_as_fresh_in_memory() {
        let registry = Registry::new();
        Outcome::HitRam.count(&registry.cells(), false);
        assert_eq!(registry.get(Metric::OutcomeHitRam), 1);
        assert_eq!(registry.get(Metric::CacheHitFresh), 1);
    }

    #[test]
    fn the_cells_sum_to_the_requests_counted() {
        let registry = Registry::new();
        let cells = registry.cells();
        Outcome::ALL
            .iter()
            .for_each(|outcome| outcome.count(&cells, false));
        let sum: u64 = Outcome::ALL
            .iter()
            .map(|outcome| registry.get(outcome.cell()))
            .sum();
        assert_eq!(usize::try_from(sum).unwrap(), Outcome::ALL.len());
    }

    #[test]
    fn tiers_read_as_operators_expect_them_in_the_log() {
        let codes = |outcome: Outcome| (outcome.crc(), outcome.chm());
        assert_eq!(codes(Outcome::HitRam), ("TCP_MEM_HIT", "HIT_RAM"));
        assert_eq!(codes(Outcome::HitFast), ("TCP_HIT", "HIT_SSD"));
        assert_eq!(codes(Outcome::HitCapacity), ("TCP_HIT", "HIT_DISK"));
    }
}
