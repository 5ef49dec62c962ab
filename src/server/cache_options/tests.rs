//! Records of the cache by their effect on a file span.

use super::*;
use crate::base::clock::SystemClock;
use crate::cache::inspect::SpanState;
use crate::cache::{Cache, CacheKey, Hit, NewObject, NotStored, ObjectKind};
use crate::config::records::Running;
use crate::metrics::{Metric, Registry};
use crate::mgmt::load::{Environment, load};
use bytes::Bytes;
use std::sync::Arc;

/// A directory of configuration files, and the span that they name.
struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    fn new(spans: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("remap.config"), "").unwrap();
        std::fs::write(dir.path().join("storage.config"), spans).unwrap();
        Self { dir }
    }

    fn load(&self, records: &str) -> (Source, Loaded) {
        std::fs::write(self.dir.path().join("records.config"), records).unwrap();
        let source = Source {
            dir: self.dir.path().to_owned(),
            environment: Environment::new(),
        };
        let loaded = load(&source, &Running::new()).unwrap();
        (source, loaded)
    }

    fn options(&self, records: &str) -> CacheOptions {
        let (source, loaded) = self.load(records);
        cache_options(&source, &loaded, self.dir.path().join("state"))
    }

    async fn open(&self, records: &str) -> (Arc<Cache>, Arc<Registry>) {
        let registry = Registry::new();
        let clock = Arc::new(SystemClock::new());
        let (cache, _) = Cache::open(self.options(records), clock, &registry);
        cache.loaded().await;
        (cache, registry)
    }
}

/// A cache of its own on a new span of 64 MiB.
async fn opened(records: &str) -> (Site, Arc<Cache>, Arc<Registry>) {
    let site = Site::new("span 64M\n");
    let (cache, registry) = site.open(records).await;
    (site, cache, registry)
}

fn key(n: usize) -> CacheKey {
    CacheKey::of_url(format!("http://a/{n}"))
}

fn store(cache: &Arc<Cache>, n: usize, len: usize) -> Result<(), NotStored> {
    let mut writer = cache.writer(NewObject {
        key: key(n),
        kind: ObjectKind::Object,
        meta: Bytes::from_static(b"head"),
        body_len: None,
        epoch: cache.epoch(),
    })?;
    writer.push(&Bytes::from(vec![7; len]))?;
    writer.commit()
}

/// The lengths of a body's pieces, which are its fragments on the device.
async fn pieces(mut hit: Hit) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let Some(piece) = hit.body.next().await.unwrap() {
        lengths.push(piece.len());
    }
    lengths
}

const NO_RAM: &str = "CONFIG proxy.config.cache.ram_cache_cutoff INT 1\n";

#[test]
fn spans_are_relative_to_the_configuration_and_ram_may_be_automatic() {
    let site = Site::new("var/span 64M tier=capacity volume=2\n/dev/sdz id=a\n");
    let options = site.options("");
    assert_eq!(options.spans[0].path, site.dir.path().join("var/span"));
    assert_eq!(options.spans[0].tier, Some(SpanTier::Capacity));
    assert_eq!(options.spans[0].volume, 2);
    assert_eq!(options.spans[1].path, PathBuf::from("/dev/sdz"));
    assert_eq!(options.ram.size, None);
}

#[test]
fn how_spans_are_read_is_as_the_records_say() {
    let options = Site::new("").options(
        "CONFIG proxy.config.aio.mode STRING io_uring\n\
         CONFIG proxy.config.strata.disk.read_depth INT 7\n\
         CONFIG proxy.config.strata.disk.read_queue INT 9\n",
    );
    assert_eq!(options.aio_mode, AioMode::IoUring);
    assert_eq!((options.disk_read_depth, options.disk_read_queue), (7, 9));
}

#[tokio::test]
async fn the_directory_is_as_large_as_the_average_object_asks() {
    let (_site, cache, _) = opened("").await;
    let record = "CONFIG proxy.config.cache.min_average_object_size INT 1000\n";
    let (_other_site, other, _) = opened(record).await;
    let entries = |cache: &Cache| cache.status().spans[0].entries_total;
    let (coarse, fine) = (entries(&cache), entries(&other));
    assert!(fine > 3 * coarse && coarse > 0, "{fine} {coarse}");
}

#[tokio::test]
async fn bodies_are_cut_at_the_fragment_size() {
    for (record, lengths) in [
        (String::new(), vec![150_000]),
        (
            "CONFIG proxy.config.cache.target_fragment_size INT 65536\n".to_owned(),
            vec![65_536, 65_536, 18_928],
        ),
    ] {
        let (_site, cache, _) = opened(&(record + NO_RAM)).await;
        store(&cache, 1, 150_000).unwrap();
        cache.sync().await;
        let hit = cache.read(&key(1)).await.unwrap();
        assert_eq!(pieces(hit).await, lengths);
    }
}

#[tokio::test]
async fn with_the_seen_filter_an_object_enters_ram_at_its_second_sight() {
    for (value, reads) in [(0, 2), (1, 1)] {
        let record = format!("CONFIG proxy.config.cache.ram_cache.use_seen_filter INT {value}\n");
        let (_site, cache, registry) = opened(&record).await;
        store(&cache, 1, 1000).unwrap();
        for _ in 0..2 {
            pieces(cache.read(&key(1)).await.unwrap()).await;
        }
        let of_ram = registry.get(Metric::CacheRamReadSuccess);
        assert_eq!(of_ram, reads, "{value}");
    }
}

#[tokio::test]
async fn a_new_span_has_blocks_of_the_sector_that_is_forced() {
    for (value, block) in [(0, 4096), (16_384, 16_384)] {
        let record = format!("CONFIG proxy.config.cache.force_sector_size INT {value}\n");
        let (site, _cache, _) = opened(&record).await;
        let span = std::fs::read(site.dir.path().join("span")).unwrap();
        let told = <[u8; 4]>::try_from(&span[8192 + 48..][..4]).unwrap();
        assert_eq!(u32::from_le_bytes(told), block);
    }
}

#[tokio::test]
async fn a_span_goes_offline_at_the_errors_that_a_reload_allows() {
    for (value, last) in [(5, 5), (2, 2)] {
        let (site, cache, _) = opened(NO_RAM).await;
        for n in 0..10 {
            store(&cache, n, 1000).unwrap();
        }
        cache.sync().await;
        let record = format!("CONFIG proxy.config.cache.max_disk_errors INT {value}\n");
        let (_, loaded) = site.load(&(record + NO_RAM));
        cache.configure(live_options(&loaded.records));
        let mut options = std::fs::File::options();
        let span = options.write(true).open(site.dir.path().join("span"));
        span.unwrap().set_len(0).unwrap();
        for n in 0..10 {
            assert!(cache.read(&key(n)).await.is_err());
        }
        let state = cache.status().spans[0].state.clone();
        assert_eq!(state, SpanState::Offline { errors: last });
    }
}

#[tokio::test]
async fn a_span_goes_offline_at_the_damage_that_a_reload_allows() {
    for value in [3, 6] {
        let (site, cache, _) = opened(NO_RAM).await;
        for n in 0..10 {
            store(&cache, n, 1000).unwrap();
        }
        cache.sync().await;
        let record = format!("CONFIG proxy.config.strata.cache.max_checksum_errors INT {value}\n");
        let (_, loaded) = site.load(&(record + NO_RAM));
        cache.configure(live_options(&loaded.records));
        let span = site.dir.path().join("span");
        let bytes = std::fs::metadata(&span).unwrap().len();
        let noise = vec![0x5a; usize::try_from(bytes).unwrap()];
        std::fs::write(&span, noise).unwrap();
        for n in 0..10 {
            assert!(cache.read(&key(n)).await.is_err());
        }
        let span = cache.status().spans.remove(0);
        assert_eq!(span.state, SpanState::Offline { errors: 0 });
        assert_eq!((span.checksum_errors, span.errors), (value, 0));
    }
}

#[test]
fn a_reload_says_how_long_a_device_may_be_silent() {
    let site = Site::new("span 64M\n");
    for (value, seconds) in [(0, 0), (7, 7)] {
        let record = format!("CONFIG proxy.config.strata.cache.io_timeout INT {value}\n");
        let (_, loaded) = site.load(&record);
        let timeout = live_options(&loaded.records).io_timeout;
        assert_eq!(timeout, Duration::from_secs(seconds));
    }
}

#[test]
fn a_reload_says_how_long_a_read_waits_for_a_page_of_the_directory() {
    let site = Site::new("span 64M\n");
    for (value, millis) in [(0, 0), (70, 70)] {
        let record = format!("CONFIG proxy.config.strata.cache.load_wait INT {value}\n");
        let (_, loaded) = site.load(&record);
        let wait = live_options(&loaded.records).load_wait;
        assert_eq!(wait, Duration::from_millis(millis));
    }
}

#[tokio::test]
async fn what_was_hot_in_ram_is_saved_and_read_ahead_as_the_records_say() {
    const NO_SAVE: &str = "CONFIG proxy.config.strata.ram_cache.save_interval INT 0\n";
    const NO_WARMTH: &str = "CONFIG proxy.config.strata.ram_cache.warm_rate INT 0\n";
    for (before, after, is_warm) in [("", "", true), (NO_SAVE, "", false), ("", NO_WARMTH, false)] {
        let (site, cache, _) = opened(before).await;
        store(&cache, 1, 1000).unwrap();
        (0..2).for_each(|_| assert!(cache.read_ram(&key(1)).is_some()));
        cache.shutdown().await;
        drop(cache);
        let (cache, _) = site.open(after).await;
        cache.warmed().await;
        assert_eq!(cache.read_ram(&key(1)).is_some(), is_warm);
    }
}

/// Stores 8 MiB as fast as can be; whether any of it had to wait too long.
fn is_refused(cache: &Arc<Cache>) -> bool {
    (0..128).any(|n| store(cache, n, 65_536) == Err(NotStored::Backlog))
}

#[tokio::test]
async fn writes_are_refused_beyond_the_backlog_that_a_reload_allows() {
    let (site, cache, _) = opened(NO_RAM).await;
    assert!(!is_refused(&cache), "8 MiB are within the default");
    let record = "CONFIG proxy.config.cache.agg_write_backlog INT 65536\n";
    let (_, loaded) = site.load(&(record.to_owned() + NO_RAM));
    cache.configure(live_options(&loaded.records));
    // The device may be quick enough now and then.
    for _ in 0..100 {
        cache.sync().await;
        if is_refused(&cache) {
            return;
        }
    }
    panic!("whatever was stored found room");
}
