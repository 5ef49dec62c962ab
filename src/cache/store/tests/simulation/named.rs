//! Faults that were found, each by itself.

use super::super::key;
use super::content::version_in;
use super::disk::Health;
use super::world::World;
use crate::base::planted::{Planted, with};
use crate::base::simulated;
use crate::cache::inspect::SpanState;
use crate::cache::tier::SpanTier;
use crate::cache::volume::{LiveStripe, Located};
use crate::metrics::Metric;
use std::panic::catch_unwind;

#[test]
fn no_power_cut_brings_back_what_was_purged_before_the_purge_is_forgotten() {
    const SEEDS: [u64; 4] = [0, 16, 32, 48];
    let fails = |bug, seed| {
        let run = || with(bug, || cut_power_after_a_purge(seed));
        catch_unwind(run).is_err()
    };
    assert!(!SEEDS.iter().any(|seed| fails(None, *seed)));
    let bug = Some(Planted::WrittenIsSafe);
    assert!(SEEDS.iter().any(|seed| fails(bug, *seed)), "it is blind");
}

fn cut_power_after_a_purge(seed: u64) {
    simulated::with(seed, || {
        let mut world = World::new(seed);
        world.start();
        world.store(1);
        world.stop();
        world.start();
        world.purge(1);
        for _ in 0..20 {
            world.tick();
            world.end_writes();
        }
        world.cut_power();
        world.start();
    });
}

#[test]
fn a_device_that_leaves_one_write_unanswered_goes_offline_and_keeps_no_stop_waiting() {
    simulated::with(0, || {
        let mut world = World::new(0);
        world.start();
        for drive in &world.drives {
            drive.disk.set_health(Health::Silent);
        }
        world.store(1);
        world.is_ill = true;
        world.sync();
        let cache = world.cache();
        let spans = cache.status().spans;
        let is_offline = |state: &SpanState| *state == SpanState::Offline { errors: 5 };
        assert!(
            spans.iter().any(|span| is_offline(&span.state)),
            "{spans:?}"
        );
        let registry = &world.running.as_ref().unwrap().registry;
        assert_eq!(registry.get(Metric::CacheSpanErrorsWrite) % 5, 0);
        world.wait("a stop", cache.shutdown());
    });
}

#[test]
fn no_power_cut_brings_a_removed_copy_back_over_what_was_stored_since() {
    let fails = |bug, seed| {
        let run = || with(bug, || cut_power_after_a_change(seed));
        catch_unwind(run).is_err()
    };
    assert!(!(0..8).any(|seed| fails(None, seed)));
    let bug = Some(Planted::UnwrittenFreeUnseen);
    assert!((0..8).any(|seed| fails(bug, seed)), "it is blind");
}

/// A key's copy on the fast tier is gone, which is written and not flushed,
/// when the key is stored anew; then the capacity tier alone is flushed.
fn cut_power_after_a_change(seed: u64) {
    simulated::with(seed, || {
        let mut world = World::new(seed);
        world.drives.truncate(2);
        world.ram.cutoff = 1;
        world.start();
        world.store(1);
        world.sync();
        for _ in 0..8 {
            world.read(1);
            world.move_copies();
        }
        world.sync();
        assert!(world.may_hold(SpanTier::Fast, 1), "nothing was promoted");
        world.remove(1);
        world.write_and_flush(SpanTier::Capacity);
        world.store(1);
        world.write_and_flush(SpanTier::Capacity);
        let is_placed = world.may_hold(SpanTier::Capacity, 1);
        world.cut_power();
        world.start();
        let is_back = world.may_hold(SpanTier::Fast, 1);
        assert!(!(is_placed && is_back), "the old copy is back");
    });
}

#[test]
fn no_power_cut_leaves_a_copy_above_an_older_version_of_what_it_was_made_from() {
    let fails = |bug, seed| {
        let run = || with(bug, || cut_power_after_a_promotion(seed));
        catch_unwind(run).is_err()
    };
    assert!(!(0..8).any(|seed| fails(None, seed)));
    let bug = Some(Planted::CopyBeforeFlush);
    assert!((0..8).any(|seed| fails(bug, seed)), "it is blind");
}

/// A newer version is written to the capacity tier, and not flushed, when it is
/// promoted; then the fast tier alone is flushed.
fn cut_power_after_a_promotion(seed: u64) {
    simulated::with(seed, || {
        let mut world = World::new(seed);
        world.drives.truncate(2);
        world.ram.cutoff = 1;
        world.start();
        world.store(1);
        world.write_and_flush(SpanTier::Capacity);
        world.store(1);
        world.write_and_flush(SpanTier::Fast);
        for _ in 0..8 {
            world.read(1);
            world.move_copies();
        }
        assert!(world.may_hold(SpanTier::Fast, 1), "nothing was promoted");
        world.write_and_flush(SpanTier::Fast);
        world.cut_power();
        world.start();
        let copy = world.version_on(SpanTier::Fast, 1);
        let source = world.version_on(SpanTier::Capacity, 1);
        let is_older = copy.zip(source).is_some_and(|(copy, source)| source < copy);
        assert!(!is_older, "{copy:?} above {source:?}");
    });
}

impl World {
    /// Whether a tier may hold a copy under a key.
    fn may_hold(&self, tier: SpanTier, n: u32) -> bool {
        let stripes = self.cache().volume.stripes().into_iter();
        let mut own = stripes.filter(|stripe| stripe.span_tier() == tier);
        own.any(|stripe| stripe.may_hold(key(n).hash()))
    }

    /// The version of a short body that a tier holds under a key.
    fn version_on(&mut self, tier: SpanTier, n: u32) -> Option<u32> {
        let stripes = self.cache().volume.stripes().into_iter();
        let own = stripes.filter(|stripe| stripe.span_tier() == tier);
        let own: Vec<_> = own.collect();
        let accept = |located: Located| Some(version_in(&located.fragment.body));
        let find = |stripe| self.wait("a look", LiveStripe::find(stripe, key(n).hash(), accept));
        own.iter().map(find).find_map(Result::ok)
    }

    /// All disks do their writes, and those of one tier their flushes.
    fn write_and_flush(&mut self, tier: SpanTier) {
        for _ in 0..20 {
            let stripes = self.cache().volume.stripes().into_iter();
            let own = stripes.filter(|stripe| stripe.span_tier() == tier);
            { own }
                .filter_map(|stripe| stripe.unflushed())
                .for_each(|batch| batch.want_safe());
            self.tick();
            self.end_writes();
            for drive in self.drives.iter().filter(|drive| drive.tier == tier) {
                while drive.disk.end_one(&mut self.prng) {}
            }
        }
    }
}
