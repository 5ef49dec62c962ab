//! Faults that were found, each by itself.

use super::disk::Health;
use super::world::World;
use crate::base::planted::{Planted, with};
use crate::base::simulated;
use crate::cache::inspect::SpanState;
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
