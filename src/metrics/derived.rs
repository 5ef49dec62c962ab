//! Metrics that are computed when read: ATS's `proxy.node.*`, and the shares
//! of the tiers.

use super::collect::{Scrape, Value};
use super::rows::{METRICS, Metric};
use super::table::MetricKind;

/// A metric that no thread counts.
#[derive(Clone, Copy, Debug)]
pub struct DerivedSpec {
    /// The dotted name.
    pub name: &'static str,
    /// How it moves.
    pub kind: MetricKind,
    /// What it shows.
    pub help: &'static str,
    /// Computes it from one reading.
    pub value: fn(&Scrape) -> Value,
}

/// Reads a counter one way or the other: its sum, or its 10-second rise.
type Read<'a> = &'a dyn Fn(Metric) -> u64;

const HITS: &[Metric] = &[
    Metric::CacheHitFresh,
    Metric::CacheHitRevalidated,
    Metric::CacheHitIms,
    Metric::CacheHitStaleServed,
];

const MISSES: &[Metric] = &[
    Metric::CacheMissCold,
    Metric::CacheMissChanged,
    Metric::CacheMissClientNotCacheable,
    Metric::CacheMissClientNoCache,
    Metric::CacheMissIms,
    Metric::CacheReadError,
];

const CLIENT_REQUEST: &[Metric] = &[
    Metric::ClientRequestHeadBytes,
    Metric::ClientRequestBodyBytes,
];
const CLIENT_RESPONSE: &[Metric] = &[
    Metric::ClientResponseHeadBytes,
    Metric::ClientResponseBodyBytes,
];
const ORIGIN_REQUEST: &[Metric] = &[
    Metric::OriginRequestHeadBytes,
    Metric::OriginRequestBodyBytes,
];
const ORIGIN_RESPONSE: &[Metric] = &[
    Metric::OriginResponseHeadBytes,
    Metric::OriginResponseBodyBytes,
];

/// What is written to the fast tier, by cause.
const FAST_WRITTEN: &[Metric] = &[
    Metric::TierFastWrittenEvacuation,
    Metric::TierFastWrittenFill,
    Metric::TierFastWrittenLog,
    Metric::TierFastWrittenPromotion,
    Metric::TierFastWrittenRefresh,
    Metric::TierFastWrittenSync,
];

fn total(read: Read<'_>, metrics: &[Metric]) -> u64 {
    metrics
        .iter()
        .fold(0, |sum, metric| sum.wrapping_add(read(*metric)))
}

/// Requests whose transaction has ended: each in one outcome, so that the sum
/// has no counter of its own that could differ.
fn completed(read: Read<'_>) -> u64 {
    let rows = METRICS.iter().map(|row| row.name);
    let outcomes = rows.filter(|name| name.starts_with("strata.outcome."));
    let metrics = outcomes.filter_map(Metric::by_name);
    metrics.fold(0, |sum, metric| sum.wrapping_add(read(metric)))
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    Value::Int(part).as_f64() / Value::Int(whole).as_f64()
}

fn hit_ratio(read: Read<'_>) -> f64 {
    let hits = total(read, HITS);
    ratio(hits, hits + total(read, MISSES))
}

fn mem_ratio(read: Read<'_>) -> f64 {
    let looked_up = total(read, HITS) + total(read, MISSES);
    ratio(read(Metric::CacheHitMemFresh), looked_up)
}

/// The share of the bytes at the clients that the origins did not have to
/// move; below zero when they moved more.
fn bandwidth_ratio(read: Read<'_>) -> f64 {
    let client = total(read, CLIENT_REQUEST) + total(read, CLIENT_RESPONSE);
    let origin = total(read, ORIGIN_REQUEST) + total(read, ORIGIN_RESPONSE);
    if client == 0 {
        return 0.0;
    }
    1.0 - ratio(origin, client)
}

/// The share of the successful cache reads of the last 10 seconds that one
/// tier answered, 0 when there were none.
fn tier_ratio(scrape: &Scrape, tier: Metric) -> f64 {
    ratio(scrape.delta(tier), scrape.delta(Metric::CacheReadSuccess))
}

/// The one metric with a label: what a tier answered of the successful cache
/// reads of the last 10 seconds, from 0 to 1.
pub(super) const HIT_RATIO: &str = "strata_hit_ratio";

/// What `/metrics` says of [`HIT_RATIO`].
pub(super) const HIT_RATIO_HELP: &str =
    "Share of the successful cache reads of the last 10 seconds that the tier answered.";

/// A series of [`HIT_RATIO`].
#[derive(Clone, Copy, Debug)]
pub(super) struct TierSeries {
    /// The label's value.
    pub(super) tier: &'static str,
    /// The series as Prometheus writes it.
    pub(super) name: &'static str,
    reads: Metric,
}

impl TierSeries {
    /// The tier's share, 0 without reads.
    pub(super) fn ratio(&self, scrape: &Scrape) -> f64 {
        tier_ratio(scrape, self.reads)
    }
}

/// Every tier.
pub(super) const TIER_SERIES: [TierSeries; 3] = [
    TierSeries {
        tier: "ram",
        name: "strata_hit_ratio{tier=\"ram\"}",
        reads: Metric::CacheRamReadSuccess,
    },
    TierSeries {
        tier: "ssd",
        name: "strata_hit_ratio{tier=\"ssd\"}",
        reads: Metric::CacheSsdReadSuccess,
    },
    TierSeries {
        tier: "hdd",
        name: "strata_hit_ratio{tier=\"hdd\"}",
        reads: Metric::CacheDiskReadSuccess,
    },
];

fn per_second(scrape: &Scrape, amount: u64) -> f64 {
    let secs = scrape.elapsed().as_secs_f64();
    if secs <= 0.0 {
        return 0.0;
    }
    Value::Int(amount).as_f64() / secs
}

/// A whole percent, as ATS cuts it; 0 for a ratio below zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..=100 first"
)]
fn int_pct(ratio: f64) -> Value {
    Value::Int((ratio * 100.0).clamp(0.0, 100.0) as u64)
}

fn kept(scrape: &Scrape) -> impl Fn(Metric) -> u64 {
    |metric| scrape.sum(metric)
}

fn recent(scrape: &Scrape) -> impl Fn(Metric) -> u64 {
    |metric| scrape.delta(metric)
}

fn bytes_free(scrape: &Scrape) -> u64 {
    let total = scrape.sum(Metric::CacheBytesTotal);
    total.saturating_sub(scrape.sum(Metric::CacheBytesUsed))
}

macro_rules! derived {
    ($( $(#[doc = $help:literal])+ $name:literal, $kind:ident, $value:expr; )+) => {
        /// Every derived metric, sorted by name.
        pub const DERIVED: &[DerivedSpec] = &[
            $( DerivedSpec {
                name: $name,
                kind: MetricKind::$kind,
                help: concat!($($help),+).trim_ascii(),
                value: $value,
            }, )+
        ];
    };
}

derived! {
    /// Percent of the successful cache reads of the last 10 seconds that the capacity tier
    /// answered; 0 when none.
    "hddhit", Gauge,
        |s| Value::Float(100.0 * tier_ratio(s, Metric::CacheDiskReadSuccess));
    /// Share of the bytes at the clients that origins did not have to move.
    "proxy.node.bandwidth_hit_ratio", Gauge,
        |s| Value::Float(bandwidth_ratio(&kept(s)));
    /// The bandwidth hit ratio of the last 10 seconds.
    "proxy.node.bandwidth_hit_ratio_avg_10s", Gauge,
        |s| Value::Float(bandwidth_ratio(&recent(s)));
    /// The bandwidth hit ratio of the last 10 seconds in whole percent.
    "proxy.node.bandwidth_hit_ratio_avg_10s_int_pct", Gauge,
        |s| int_pct(bandwidth_ratio(&recent(s)));
    /// The bandwidth hit ratio in whole percent.
    "proxy.node.bandwidth_hit_ratio_int_pct", Gauge,
        |s| int_pct(bandwidth_ratio(&kept(s)));
    /// Bytes of the stripes that hold nothing yet.
    "proxy.node.cache.bytes_free", Gauge,
        |s| Value::Int(bytes_free(s));
    /// Bytes that the stripes can hold.
    "proxy.node.cache.bytes_total", Gauge,
        |s| Value::Int(s.sum(Metric::CacheBytesTotal));
    /// Share of the stripes' bytes that hold nothing yet, from 0 to 1.
    "proxy.node.cache.percent_free", Gauge,
        |s| Value::Float(ratio(bytes_free(s), s.sum(Metric::CacheBytesTotal)));
    /// Share of the requests that a fresh response in RAM answered.
    "proxy.node.cache_hit_mem_ratio", Gauge,
        |s| Value::Float(mem_ratio(&kept(s)));
    /// The RAM hit ratio of the last 10 seconds.
    "proxy.node.cache_hit_mem_ratio_avg_10s", Gauge,
        |s| Value::Float(mem_ratio(&recent(s)));
    /// The RAM hit ratio of the last 10 seconds in whole percent.
    "proxy.node.cache_hit_mem_ratio_avg_10s_int_pct", Gauge,
        |s| int_pct(mem_ratio(&recent(s)));
    /// The RAM hit ratio in whole percent.
    "proxy.node.cache_hit_mem_ratio_int_pct", Gauge,
        |s| int_pct(mem_ratio(&kept(s)));
    /// Share of the requests that a stored response answered: hits by hits and misses.
    "proxy.node.cache_hit_ratio", Gauge,
        |s| Value::Float(hit_ratio(&kept(s)));
    /// The hit ratio of the last 10 seconds.
    "proxy.node.cache_hit_ratio_avg_10s", Gauge,
        |s| Value::Float(hit_ratio(&recent(s)));
    /// The hit ratio of the last 10 seconds in whole percent.
    "proxy.node.cache_hit_ratio_avg_10s_int_pct", Gauge,
        |s| int_pct(hit_ratio(&recent(s)));
    /// The hit ratio in whole percent.
    "proxy.node.cache_hit_ratio_int_pct", Gauge,
        |s| int_pct(hit_ratio(&kept(s)));
    /// Requests that a stored response answered.
    "proxy.node.cache_total_hits", Counter,
        |s| Value::Int(total(&kept(s), HITS));
    /// Requests that no stored response answered.
    "proxy.node.cache_total_misses", Counter,
        |s| Value::Int(total(&kept(s), MISSES));
    /// Megabits a second sent to clients in the last 10 seconds.
    "proxy.node.client_throughput_out", Gauge,
        |s| Value::Float(8e-6 * per_second(s, total(&recent(s), CLIENT_RESPONSE)));
    /// Origin connections that are open now.
    "proxy.node.http.origin_server_current_connections_count", Gauge,
        |s| Value::Int(s.sum(Metric::CurrentServerConnections));
    /// Bytes sent to origins.
    "proxy.node.http.origin_server_total_request_bytes", Counter,
        |s| Value::Int(total(&kept(s), ORIGIN_REQUEST));
    /// Bytes received from origins.
    "proxy.node.http.origin_server_total_response_bytes", Counter,
        |s| Value::Int(total(&kept(s), ORIGIN_RESPONSE));
    /// Requests made for origins, also where none could be reached.
    "proxy.node.http.origin_server_total_transactions_count", Counter,
        |s| Value::Int(s.sum(Metric::OutgoingRequests));
    /// Bytes a second sent to clients in the last 10 seconds.
    "proxy.node.http.throughput", Gauge,
        |s| Value::Float(per_second(s, total(&recent(s), CLIENT_RESPONSE)));
    /// Client connections that are open now.
    "proxy.node.http.user_agent_current_connections_count", Gauge,
        |s| Value::Int(s.sum(Metric::CurrentClientConnections));
    /// Bytes received from clients.
    "proxy.node.http.user_agent_total_request_bytes", Counter,
        |s| Value::Int(total(&kept(s), CLIENT_REQUEST));
    /// Bytes sent to clients.
    "proxy.node.http.user_agent_total_response_bytes", Counter,
        |s| Value::Int(total(&kept(s), CLIENT_RESPONSE));
    /// Transactions a second that ended in the last 10 seconds.
    "proxy.node.http.user_agent_xacts_per_second", Gauge,
        |s| Value::Float(per_second(s, completed(&recent(s))));
    /// Client transactions that have ended.
    "proxy.node.http.user_agents_total_documents_served", Counter,
        |s| Value::Int(completed(&kept(s)));
    /// Client transactions that have ended; tsar divides total_transactions_time by it.
    "proxy.node.http.user_agents_total_transactions_count", Counter,
        |s| Value::Int(completed(&kept(s)));
    /// Bytes received from clients and sent to them.
    "proxy.node.user_agent_total_bytes", Counter,
        |s| Value::Int(total(&kept(s), CLIENT_REQUEST) + total(&kept(s), CLIENT_RESPONSE));
    /// Cache reads answered from the fast tier, under the name of ATS 4.2.
    "proxy.process.cache.interim.read.success", Counter,
        |s| Value::Int(s.sum(Metric::CacheSsdReadSuccess));
    /// Whole percent of the stripes' bytes that hold written data.
    "proxy.process.cache.percent_full", Gauge,
        |s| int_pct(ratio(s.sum(Metric::CacheBytesUsed), s.sum(Metric::CacheBytesTotal)));
    /// Requests whose transaction has ended: the sum of the outcomes.
    "proxy.process.http.completed_requests", Counter,
        |s| Value::Int(completed(&kept(s)));
    /// Percent of the successful cache reads of the last 10 seconds that the RAM cache
    /// answered; 0 when none.
    "ramhit", Gauge,
        |s| Value::Float(100.0 * tier_ratio(s, Metric::CacheRamReadSuccess));
    /// Percent of the successful cache reads of the last 10 seconds that the fast tier
    /// answered; 0 when none.
    "ssdhit", Gauge,
        |s| Value::Float(100.0 * tier_ratio(s, Metric::CacheSsdReadSuccess));
    /// Cache reads answered from the capacity tier, as disk.read.success counts them.
    "strata.tier.capacity.hits", Counter,
        |s| Value::Int(s.sum(Metric::CacheDiskReadSuccess));
    /// Bytes written to the fast tier, whatever the cause.
    "strata.tier.fast.bytes_written", Counter,
        |s| Value::Int(total(&|metric| s.sum(metric), FAST_WRITTEN));
    /// Cache reads answered from the fast tier, as ssd.read.success counts them.
    "strata.tier.fast.hits", Counter,
        |s| Value::Int(s.sum(Metric::CacheSsdReadSuccess));
    /// Cache reads answered from the RAM cache, as ram.read.success counts them.
    "strata.tier.ram.hits", Counter,
        |s| Value::Int(s.sum(Metric::CacheRamReadSuccess));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::MonoTime;
    use crate::metrics::{Collector, Registry};

    fn scrape(counts: &[(Metric, u64)]) -> Scrape {
        let registry = Registry::new();
        let cells = registry.cells();
        let collector = Collector::new(registry, MonoTime::default());
        for (metric, n) in counts {
            cells.add(*metric, *n);
        }
        collector.scrape(MonoTime::from_nanos(2_000_000_000))
    }

    fn float(scrape: &Scrape, name: &str) -> f64 {
        scrape.value(name).unwrap().as_f64()
    }

    #[test]
    fn names_are_sorted_and_none_is_a_counted_one() {
        for pair in DERIVED.windows(2) {
            assert!(pair[0].name < pair[1].name, "{}", pair[1].name);
        }
        for spec in DERIVED {
            assert_eq!(Metric::by_name(spec.name), None, "{}", spec.name);
        }
    }

    #[test]
    fn the_three_tiers_share_a_hundred_percent_of_the_reads() {
        let scrape = scrape(&[
            (Metric::CacheReadSuccess, 8),
            (Metric::CacheRamReadSuccess, 5),
            (Metric::CacheSsdReadSuccess, 2),
            (Metric::CacheDiskReadSuccess, 1),
        ]);
        let tiers = ["ramhit", "ssdhit", "hddhit"].map(|name| float(&scrape, name));
        assert_eq!(tiers, [62.5, 25.0, 12.5]);
    }

    #[test]
    fn nothing_read_is_zero_and_not_a_division_by_it() {
        let scrape = scrape(&[]);
        for spec in DERIVED {
            assert!(
                (spec.value)(&scrape).as_f64().abs() < f64::EPSILON,
                "{}",
                spec.name
            );
        }
    }

    #[test]
    fn what_the_formulas_of_tsar_read_is_there() {
        let scrape = scrape(&[]);
        for names in [
            "node.cache_hit_ratio_avg_10s node.bandwidth_hit_ratio_avg_10s",
            "node.cache_hit_mem_ratio_avg_10s process.cache.ram.read.success",
            "process.cache.ssd.read.success process.cache.read.success",
            "process.http.incoming_requests process.http.total_client_connections",
            "node.http.user_agent_total_response_bytes process.http.total_transactions_time",
            "node.http.user_agents_total_transactions_count process.http.outgoing_requests",
            "process.http.total_server_connections",
            "node.http.origin_server_total_response_bytes",
            "process.cache.ram_cache.bytes_used process.cache.bytes_used",
            "process.cache.direntries.used process.http.current_client_connections",
            "process.http.current_server_connections process.http.current_cache_connections",
            "process.net.connections_currently_open",
            "process.http.current_active_client_connections",
            "process.http.current_client_transactions process.http.current_server_transactions",
            "process.http.missing_host_hdr process.http.transaction_counts.errors.aborts",
            "process.http.transaction_counts.errors.pre_accept_hangups",
            "process.http.transaction_counts.errors.empty_hangups",
            "process.http.transaction_counts.errors.early_hangups",
            "process.http.transaction_counts.errors.connect_failed",
            "process.http.transaction_counts.errors.other",
        ] {
            for name in names.split(' ') {
                assert!(scrape.value(&format!("proxy.{name}")).is_some(), "{name}");
            }
        }
        for status in [200, 206, 301, 302, 304, 400, 403, 404, 500, 502, 503, 504] {
            let name = format!("proxy.process.http.{status}_responses");
            assert!(scrape.value(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn hit_ratio_counts_what_ats_counts_as_hits_and_misses() {
        let scrape = scrape(&[
            (Metric::CacheHitFresh, 6),
            (Metric::CacheHitMemFresh, 4),
            (Metric::CacheHitIms, 1),
            (Metric::CacheMissCold, 1),
        ]);
        assert!((float(&scrape, "proxy.node.cache_hit_ratio") - 0.875).abs() < 1e-9);
        assert!((float(&scrape, "proxy.node.cache_hit_mem_ratio_avg_10s") - 0.5).abs() < 1e-9);
        assert_eq!(
            scrape.value("proxy.node.cache_hit_ratio_int_pct"),
            Some(Value::Int(87))
        );
    }

    #[test]
    fn a_bandwidth_ratio_below_zero_is_shown_as_it_is() {
        let scrape = scrape(&[
            (Metric::ClientResponseBodyBytes, 100),
            (Metric::OriginResponseBodyBytes, 150),
        ]);
        assert!((float(&scrape, "proxy.node.bandwidth_hit_ratio") + 0.5).abs() < 1e-9);
        assert!((float(&scrape, "proxy.node.http.throughput") - 50.0).abs() < 1e-9);
    }
}
