//! Records and spans as the options of the cache.

use crate::cache::{
    AioMode, CacheOptions, Hosting, Hosts, LiveOptions, RamOptions, SpanOptions, SpanTier,
    TierOptions, VolumeOptions, VolumeSize,
};
use crate::config::hosting::{self, HostingFile};
use crate::config::records::Records;
use crate::config::storage::{SpanLine, Tier};
use crate::config::volume::{self, VolumeLine};
use crate::mgmt::load::{Loaded, Source};
use std::path::PathBuf;
use std::time::Duration;

/// The options of the cache that the files describe, its durable state in
/// `state_dir`.
pub(super) fn cache_options(source: &Source, loaded: &Loaded, state_dir: PathBuf) -> CacheOptions {
    let records = &loaded.records;
    let defaults = CacheOptions::default();
    let live = live_options(records);
    CacheOptions {
        spans: loaded
            .storage
            .spans
            .iter()
            .map(|span| span_options(source, span))
            .collect(),
        volumes: loaded.volumes.volumes.iter().map(volume_options).collect(),
        hosting: hosting(&loaded.hosting),
        state_dir: Some(state_dir),
        ram: RamOptions {
            size: live.ram_size,
            cutoff: live.ram_cutoff,
            seen_filter: number(records.cache_ram_cache_use_seen_filter, 0),
        },
        aio_mode: aio_mode(&records.aio_mode),
        threads_per_disk: number(records.cache_threads_per_disk, defaults.threads_per_disk),
        disk_read_depth: number(records.strata_disk_read_depth, defaults.disk_read_depth),
        disk_read_queue: number(records.strata_disk_read_queue, defaults.disk_read_queue),
        target_fragment_size: number(
            records.cache_target_fragment_size,
            defaults.target_fragment_size,
        ),
        min_average_object_size: number(
            records.cache_min_average_object_size,
            defaults.min_average_object_size,
        ),
        agg_write_backlog: live.agg_write_backlog,
        dir_sync_frequency: live.dir_sync_frequency,
        max_doc_size: live.max_doc_size,
        max_disk_errors: live.max_disk_errors,
        max_checksum_errors: live.max_checksum_errors,
        io_timeout: live.io_timeout,
        load_wait: live.load_wait,
        save_every: live.save_every,
        warm_rate: live.warm_rate,
        tier: live.tier,
        force_sector_size: number(records.cache_force_sector_size, defaults.force_sector_size),
        clear: false,
    }
}

/// The options by which a start is planned, which opens no state.
pub(super) fn options_to_plan(source: &Source, loaded: &Loaded) -> CacheOptions {
    cache_options(source, loaded, PathBuf::new())
}

/// The options that a reload changes.
pub(super) fn live_options(records: &Records) -> LiveOptions {
    let defaults = CacheOptions::default().live();
    let frequency = number(records.cache_dir_sync_frequency, 60);
    LiveOptions {
        ram_size: u64::try_from(records.cache_ram_cache_size).ok(),
        ram_cutoff: number(records.cache_ram_cache_cutoff, 0),
        agg_write_backlog: number(records.cache_agg_write_backlog, defaults.agg_write_backlog),
        dir_sync_frequency: Duration::from_secs(frequency),
        max_doc_size: number(records.cache_max_doc_size, defaults.max_doc_size),
        max_disk_errors: number(records.cache_max_disk_errors, defaults.max_disk_errors),
        io_timeout: Duration::from_secs(number(records.strata_cache_io_timeout, 30)),
        load_wait: Duration::from_millis(number(records.strata_cache_load_wait, 1000)),
        save_every: Duration::from_secs(number(records.strata_ram_cache_save_interval, 300)),
        warm_rate: number(records.strata_ram_cache_warm_rate, defaults.warm_rate),
        max_checksum_errors: number(
            records.strata_cache_max_checksum_errors,
            defaults.max_checksum_errors,
        ),
        tier: tier_options(records),
    }
}

fn tier_options(records: &Records) -> TierOptions {
    TierOptions {
        promote_after: number(records.cache_interim_migrate_threshold, 2),
        fills: match &*records.strata_tier_fills {
            "fast" => SpanTier::Fast,
            _ => SpanTier::Capacity,
        },
        fast_write_budget: number(records.strata_tier_fast_write_budget, 0),
        fast_write_burst: number(records.strata_tier_fast_write_burst, 0),
        fast_endurance: number(records.strata_tier_fast_endurance, 0),
    }
}

fn span_options(source: &Source, span: &SpanLine) -> SpanOptions {
    SpanOptions {
        path: source.path(&span.path),
        size: span.size,
        id: span.id.clone(),
        volume: span.volume.unwrap_or(0),
        tier: span.tier.map(|tier| match tier {
            Tier::Fast => SpanTier::Fast,
            Tier::Capacity => SpanTier::Capacity,
        }),
    }
}

fn volume_options(volume: &VolumeLine) -> VolumeOptions {
    VolumeOptions {
        number: volume.number,
        size: match volume.size {
            volume::VolumeSize::Percent(percent) => VolumeSize::Percent(percent),
            volume::VolumeSize::Megabytes(megabytes) => VolumeSize::Megabytes(megabytes),
        },
        ram_cache: volume.ram_cache,
    }
}

/// The rules of hosting.config as the cache takes them.
pub(super) fn hosting(file: &HostingFile) -> Hosting {
    let rules = file.rules.iter().map(|rule| {
        let hosts = match &rule.hosts {
            hosting::Hosts::Any => Hosts::Any,
            hosting::Hosts::Name(name) => Hosts::Name(name.clone()),
            hosting::Hosts::Domain(name) => Hosts::Domain(name.clone()),
        };
        (hosts, rule.volumes.iter().copied().map(u32::from).collect())
    });
    Hosting::new(&rules.collect::<Vec<_>>())
}

fn aio_mode(word: &str) -> AioMode {
    match word {
        "thread" => AioMode::Thread,
        "native" => AioMode::Native,
        "io_uring" => AioMode::IoUring,
        _ => AioMode::Auto,
    }
}

/// A record as the number that an option is; its range in the table keeps it
/// from falling back.
fn number<T: TryFrom<i64>>(value: i64, fallback: T) -> T {
    T::try_from(value).unwrap_or(fallback)
}

#[cfg(test)]
mod tests;
