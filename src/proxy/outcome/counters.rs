//! ATS's counters that gather several outcomes (`cache_*`,
//! `transaction_counts.*` and the squid codes).

use super::Outcome;
use crate::metrics::Metric;

const HIT_RAM: &[Metric] = &[
    Metric::CacheHitFresh,
    Metric::CacheHitMemFresh,
    Metric::TcpHit,
    Metric::TransactionHitFresh,
];
const HIT_DEVICE: &[Metric] = &[
    Metric::CacheHitFresh,
    Metric::TcpHit,
    Metric::TransactionHitFresh,
];
const HIT_REVALIDATED: &[Metric] = &[
    Metric::CacheHitRevalidated,
    Metric::TcpRefreshHit,
    Metric::TransactionHitRevalidated,
];
const STALE: &[Metric] = &[Metric::CacheHitStaleServed, Metric::TransactionOther];
const MISS_COLD: &[Metric] = &[
    Metric::CacheMissCold,
    Metric::TcpMiss,
    Metric::TransactionMissCold,
];
const MISS_CONDITIONAL: &[Metric] = &[
    Metric::CacheMissIms,
    Metric::TcpImsMiss,
    Metric::TransactionMissCold,
];
const MISS_CHANGED: &[Metric] = &[
    Metric::CacheMissChanged,
    Metric::TcpRefreshMiss,
    Metric::TransactionMissChanged,
];
const MISS_EXPIRED: &[Metric] = &[
    Metric::CacheMissChanged,
    Metric::TcpExpiredMiss,
    Metric::TransactionMissChanged,
];
const MISS_NO_CACHE: &[Metric] = &[
    Metric::CacheMissClientNoCache,
    Metric::TcpClientRefresh,
    Metric::TransactionMissClientNoCache,
];
/// The cache could not have answered.
const NOT_CACHEABLE: &[Metric] = &[
    Metric::CacheMissClientNotCacheable,
    Metric::TcpMiss,
    Metric::TransactionMissNotCacheable,
];
const TUNNEL: &[Metric] = &[Metric::Tunnels, Metric::TcpMiss, Metric::TransactionOther];
const CLIENT_GONE: &[Metric] = &[Metric::ErrClientAbort, Metric::TransactionErrorsAborts];
const NO_ORIGIN: &[Metric] = &[
    Metric::CacheMissCold,
    Metric::ErrConnectFail,
    Metric::TransactionErrorsConnectFailed,
];
const LOOP: &[Metric] = &[Metric::ProxyLoopDetected, Metric::TransactionOther];

/// What a request that ended in `outcome` counts in, besides the outcome's own
/// cell. ATS tells conditional requests apart where nothing was stored.
pub(super) const fn of(outcome: Outcome, is_conditional: bool) -> &'static [Metric] {
    use Outcome as O;
    match outcome {
        O::HitRam => HIT_RAM,
        O::HitFast | O::HitCapacity => HIT_DEVICE,
        O::HitNotModified => &[Metric::CacheHitIms, Metric::TcpImsHit],
        O::HitWhileWriting => &[Metric::CacheHitRww],
        O::HitRevalidated => HIT_REVALIDATED,
        O::StaleWhileRevalidate | O::StaleOriginFailed | O::StaleOriginError | O::StaleAccepted => {
            STALE
        }
        O::MissCold | O::MissPartial if is_conditional => MISS_CONDITIONAL,
        O::MissCold | O::MissPartial => MISS_COLD,
        O::MissChanged => MISS_CHANGED,
        O::MissExpired => MISS_EXPIRED,
        O::MissReadError => &[Metric::CacheReadError],
        O::MissNoCache => MISS_NO_CACHE,
        O::MissNoStore
        | O::MissMethod
        | O::MissRange
        | O::MissCacheOff
        | O::UncacheableNoStore
        | O::UncacheablePrivate
        | O::UncacheableStatus
        | O::UncacheableLifetime
        | O::UncacheableCookie
        | O::UncacheableVary
        | O::UncacheableAuthorization
        | O::UncacheableOther
        | O::UncacheableRemembered => NOT_CACHEABLE,
        O::ClientAbort | O::ClientReadError => CLIENT_GONE,
        O::OriginDns | O::OriginConnect => NO_ORIGIN,
        O::OriginTimeout | O::OriginClosed | O::OriginMalformed => {
            &[Metric::TransactionErrorsOther]
        }
        O::Tunnel => TUNNEL,
        O::AnsweredLoop => LOOP,
        O::Denied
        | O::DeniedForward
        | O::AnsweredRedirect
        | O::AnsweredNoRule
        | O::AnsweredInvalid
        | O::AnsweredUnsupported
        | O::AnsweredOnlyIfCached
        | O::AnsweredPurged
        | O::AnsweredPushed
        | O::AnsweredOptions
        | O::AnsweredInternal => &[Metric::TransactionOther],
    }
}
