//! Volumes: who shares what, and what a change of it keeps.

use super::machine::{self, DISK, Machine, Running, text};
use super::*;
use crate::cache::hosting::{Hosts, Volumes};
use crate::cache::options::{VolumeOptions, VolumeSize};
use crate::cache::tier::SpanTier;
use crate::device::MemDisk;
use crate::metrics::{Collector, Value};

const OBJECTS: u32 = 100;

fn share(number: u8, percent: u8) -> VolumeOptions {
    VolumeOptions {
        number,
        size: VolumeSize::Percent(percent),
        ram_cache: true,
    }
}

fn host(name: &str, volume: u32) -> (Hosts, Volumes) {
    (Hosts::Name(name.into()), [volume].into())
}

fn url(host: &str, n: u32) -> CacheKey {
    CacheKey::of_url(format!("http://{host}/{n}"))
}

/// A machine of larger disks, half of each for volume 1 and half for 2, where
/// host one goes to the first and host two to the second.
fn halves(tiers: &[SpanTier]) -> Machine {
    let mut machine = Machine::with(tiers);
    for (_, disk) in &mut machine.disks {
        *disk = MemDisk::blank(3 * DISK);
    }
    machine.shares = vec![share(1, 50), share(2, 50)];
    machine.hosting = Hosting::new(&[host("one", 1), host("two", 2)]);
    machine
}

impl Running {
    fn fill_hosts(&self) {
        for n in 0..OBJECTS {
            for host in ["one", "two", "other"] {
                store(&self.cache, &url(host, n), &text(n, 1000)).unwrap();
            }
        }
    }

    async fn hits(&self, host: &str) -> u32 {
        let mut hits = 0;
        for n in 0..OBJECTS {
            let found = self.cache.read(&url(host, n)).await;
            hits += u32::from(found.is_ok_and(|hit| body(&hit) == text(n, 1000)));
        }
        hits
    }

    async fn volumes_of(&self, host: &str) -> Volumes {
        let mut found = Volumes::new();
        for n in 0..OBJECTS {
            let copies = self.cache.locate(&url(host, n)).await;
            found.extend(copies.iter().filter_map(|copy| copy.volume));
        }
        found
    }

    fn uuids(&self, volume: u32) -> Vec<u128> {
        let stripes = self.cache.volume.stripes();
        let own = stripes.iter().filter(|stripe| stripe.volume == volume);
        own.map(|stripe| stripe.uuid).collect()
    }

    async fn end(self) {
        self.cache.shutdown().await;
        self.kill();
    }
}

#[tokio::test]
async fn a_host_s_objects_lie_in_its_volume_on_every_span_and_others_anywhere() {
    let machine = halves(&[SpanTier::Capacity, SpanTier::Capacity]);
    let running = machine.start().await;
    assert_eq!((running.uuids(1).len(), running.uuids(2).len()), (2, 2));
    running.fill_hosts();
    assert_eq!(running.volumes_of("one").await, [1].into());
    assert_eq!(running.volumes_of("two").await, [2].into());
    assert_eq!(running.volumes_of("other").await, [1, 2].into());
    running.end().await;
    let running = machine.start().await;
    for host in ["one", "two", "other"] {
        assert_eq!(running.hits(host).await, OBJECTS, "{host}");
    }
    assert!(running.cache.read(&url("two", OBJECTS)).await.is_err());
    let collector = Collector::new(Arc::clone(&running.registry), Default::default());
    let count = |name: &str| {
        let scrape = collector.scrape(Default::default());
        match scrape.value(&format!("proxy.process.cache.volume_{name}")) {
            Some(Value::Int(count)) => count,
            other => panic!("{name}: {other:?}"),
        }
    };
    let reads = ["1", "2"].map(|n| count(&format!("{n}.read.success")));
    assert_eq!(reads.iter().sum::<u64>(), 300);
    assert!(
        reads.iter().all(|reads| (101..200).contains(reads)),
        "{reads:?}"
    );
    assert_eq!(count("2.read.failure"), 1);
    assert!(count("1.bytes_used") > 100_000 && count("1.bytes_total") > count("1.bytes_used"));
    let listed = running.cache.list(b"http://", Some(2), None).await.objects;
    assert!(listed.iter().all(|object| object.volume == 2));
    running.cache.clear(Some(1)).await.unwrap();
    assert_eq!(running.hits("one").await, 0);
    assert_eq!(running.hits("two").await, OBJECTS);
    running.end().await;
}

#[tokio::test]
async fn a_volume_is_promoted_within_itself() {
    let machine = halves(&[SpanTier::Fast, SpanTier::Capacity]);
    let running = machine.start().await;
    running.fill_hosts();
    running.cache.sync().await;
    for _ in 0..3 {
        assert_eq!(running.hits("one").await, OBJECTS);
        running.cache.mover.settled().await;
    }
    let hit = running.cache.read(&url("one", 1)).await.unwrap();
    assert_eq!(hit.tier, Tier::Fast);
    assert_eq!(running.volumes_of("one").await, [1].into());
    running.end().await;
}

#[tokio::test]
async fn another_size_of_a_volume_costs_that_volume_only() {
    let mut machine = halves(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.fill_hosts();
    let kept = running.uuids(2);
    running.end().await;
    machine.shares = vec![share(1, 20), share(2, 50)];
    let running = machine.start().await;
    assert_eq!(running.uuids(2), kept);
    assert_eq!(running.hits("two").await, OBJECTS);
    assert_eq!(running.hits("one").await, 0);
    running.fill_hosts();
    assert_eq!(running.hits("one").await, OBJECTS);
    running.end().await;
}

#[tokio::test]
async fn without_volumes_again_all_is_one_and_nothing_is_lost() {
    let mut machine = halves(&[SpanTier::Capacity, SpanTier::Capacity]);
    machine.hosting = Hosting::default();
    let running = machine.start().await;
    running.fill_hosts();
    running.cache.clear(Some(2)).await.unwrap();
    let left = running.hits("one").await;
    assert!((10..90).contains(&left), "{left}");
    running.end().await;
    machine.shares = Vec::new();
    let running = machine.start().await;
    assert_eq!(running.uuids(0).len(), 4);
    assert_eq!(
        running.hits("one").await,
        0,
        "what was cleared of a volume stays so in the one that has its stripes"
    );
    running.fill_hosts();
    running.end().await;
    let running = machine.start().await;
    assert_eq!(running.hits("one").await, OBJECTS);
    running.end().await;
}

#[tokio::test]
async fn a_span_that_is_missing_changes_no_volume_on_the_others() {
    let mut machine = halves(&[SpanTier::Capacity, SpanTier::Capacity]);
    let running = machine.start().await;
    running.fill_hosts();
    let before = [running.uuids(1), running.uuids(2)];
    running.end().await;
    let lost = std::mem::replace(&mut machine.disks[1].1, MemDisk::blank(4096));
    machine.shares = vec![share(1, 20), share(2, 80)];
    let running = machine.start().await;
    for (before, volume) in before.iter().zip(1..) {
        assert!(
            running
                .uuids(volume)
                .iter()
                .all(|uuid| before.contains(uuid))
        );
        assert_eq!(running.uuids(volume).len(), 1);
    }
    running.end().await;
    machine.disks[1].1 = lost;
    machine.shares = vec![share(1, 50), share(2, 50)];
    let running = machine.start().await;
    assert_eq!([running.uuids(1), running.uuids(2)], before);
    running.end().await;
}

#[tokio::test]
async fn a_host_that_moves_and_comes_back_finds_no_older_version() {
    let machine = halves(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.fill_hosts();
    running
        .cache
        .host(Hosting::new(&[host("one", 2), host("two", 2)]));
    assert_eq!(running.hits("one").await, 0);
    for n in 0..OBJECTS {
        store(&running.cache, &url("one", n), b"newer").unwrap();
    }
    running.cache.sync().await;
    assert_eq!(running.volumes_of("one").await, [2].into());
    running.cache.host(machine.hosting.clone());
    assert_eq!(running.hits("one").await, 0);
    running.end().await;
    assert_eq!(machine.start().await.hits("one").await, 0);
}

#[tokio::test]
async fn a_volume_without_ram_is_read_from_its_spans() {
    let mut machine = halves(&[SpanTier::Capacity]);
    machine.ram.cutoff = 0;
    machine.shares[1].ram_cache = false;
    let running = machine.start().await;
    running.fill_hosts();
    running.cache.sync().await;
    for _ in 0..2 {
        let hit = running.cache.read(&url("two", 1)).await.unwrap();
        assert_eq!(hit.tier, Tier::Capacity);
    }
    let hit = running.cache.read(&url("one", 1)).await.unwrap();
    assert_eq!(hit.tier, Tier::Ram);
    running.end().await;
}

#[tokio::test]
async fn a_disk_of_its_own_belongs_to_its_volume_alone() {
    let mut machine = halves(&[SpanTier::Capacity, SpanTier::Capacity]);
    machine.volumes = vec![0, 2];
    machine.shares = vec![share(1, 100), share(2, 1)];
    let running = machine.start().await;
    let stripes = running.cache.volume.stripes();
    let mut of: Vec<_> = stripes
        .iter()
        .map(|s| (s.path().to_owned(), s.volume))
        .collect();
    of.sort();
    assert_eq!(of, [(machine::path(0), 1), (machine::path(1), 2)]);
    running.end().await;
}
