//! What goes wrong while a cache runs: devices that fail, hang, or leave.

use super::disk::Health;
use super::world::{Drive, KEYS, World};
use crate::cache::format::{to_u64, to_usize};
use crate::cache::invalidation::Presence;
use crate::metrics::Metric;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Requests fail with EIO, some or, from a moment on, all.
    Failing,
    /// A device answers nothing, for a while.
    Hanging,
    /// An operator takes spans offline, and back, while it runs.
    Away,
    /// The power goes instead of the process alone.
    Power,
    /// Bodies are long and disks are small: the log wraps under readers.
    Wrap,
}

/// The faults of a seed, by its remainder; those of none are calm.
const WEATHERS: [&[Fault]; 16] = {
    use Fault::{Away, Failing, Hanging, Power, Wrap};
    [
        &[],
        &[],
        &[],
        &[Failing],
        &[Away],
        &[],
        &[Power],
        &[Hanging],
        &[Failing, Away],
        &[],
        &[Wrap],
        &[Power, Wrap],
        &[],
        &[Power],
        &[Failing, Away, Power],
        &[Failing, Hanging, Wrap],
    ]
};

/// The faults that a seed has.
pub(super) fn weather_of(seed: u64) -> &'static [Fault] {
    WEATHERS[to_usize(seed % to_u64(WEATHERS.len()))]
}

impl World {
    pub(super) fn has(&self, fault: Fault) -> bool {
        self.weather.contains(&fault)
    }

    /// Whether a fault comes now.
    pub(super) fn strikes(&mut self) -> bool {
        !self.weather.is_empty() && self.prng.below(16) == 0
    }

    /// One of the faults of the seed.
    pub(super) fn mishap(&mut self) {
        let at = self.prng.below(to_u64(self.weather.len()));
        match self.weather[to_usize(at)] {
            Fault::Failing => self.sicken(&[Health::Failing, Health::Dead]),
            Fault::Hanging => self.sicken(&[Health::Silent]),
            Fault::Away => self.send_away(),
            Fault::Power if self.prng.below(4) == 0 => self.restart(),
            Fault::Power => {}
            Fault::Wrap => {
                let n = u32::try_from(self.prng.below(KEYS.into())).unwrap();
                self.begin_body(n);
                (0..4).for_each(|_| self.read_on());
            }
        }
    }

    /// A disk falls ill, or gets well and is taken back if it went offline.
    fn sicken(&mut self, ills: &[Health]) {
        let Some(n) = self.some_drive() else {
            return;
        };
        let ill = ills[to_usize(self.prng.below(to_u64(ills.len())))];
        let disk = &self.drives[n].disk;
        match disk.health() {
            Health::Sound => {
                self.is_unsure = true;
                self.is_ill = true;
                disk.set_health(ill);
            }
            Health::Failing | Health::Dead | Health::Silent => {
                disk.set_health(Health::Sound);
                self.take_back(n);
            }
        }
        self.tally.mishaps += 1;
    }

    /// A disk that is plugged in.
    fn some_drive(&mut self) -> Option<usize> {
        let present = |(_, drive): &(usize, &Drive)| drive.is_present;
        let present = self.drives.iter().enumerate().filter(present);
        let present: Vec<usize> = present.map(|(n, _)| n).collect();
        let at = self.prng.below(to_u64(present.len()).max(1));
        present.get(to_usize(at)).copied()
    }

    /// An operator takes a span offline, or back.
    fn send_away(&mut self) {
        let Some(n) = self.some_drive() else {
            return;
        };
        self.is_unsure = true;
        self.tally.mishaps += 1;
        if self.take_back(n) {
            return;
        }
        let cache = self.cache();
        let path = self.path_of(n);
        // It may have gone offline by itself a moment ago.
        self.wait("a span's leave", cache.offline(&path)).ok();
    }

    /// An operator takes a span back into use; whether it comes.
    fn take_back(&mut self, n: usize) -> bool {
        let cache = self.cache();
        let opened = self.opened(n);
        let disk = &self.drives[n].disk;
        disk.set_at_once(true);
        let back = cache.online_over(
            &self.path_of(n),
            |_| Ok(opened),
            |uuid| cache.state.set_presence(uuid, Presence::Returning),
        );
        disk.set_at_once(false);
        self.tally.returns += u64::from(back.is_ok());
        back.is_ok()
    }

    /// What is silent for good is given up in the end.
    pub(super) fn pass_time(&mut self) {
        let running = self.running.as_ref().unwrap();
        let limit = running.cache.live.load().io_timeout;
        running.clock.advance(limit);
        running.cache.thread.tick();
    }

    pub(super) fn is_silent(&self) -> bool {
        let mut disks = self.drives.iter().map(|drive| &drive.disk);
        disks.any(|disk| disk.health() == Health::Silent)
    }

    /// Each write that failed was counted.
    pub(super) fn count_faults(&self) {
        let failed: u64 = self.drives.iter().map(|d| d.disk.take_failed()).sum();
        let registry = &self.running.as_ref().unwrap().registry;
        let counted = registry.get(Metric::CacheSpanErrorsWrite);
        assert!(
            counted >= failed,
            "STRATA_SIM_SEED={}: {failed} writes failed, {counted} were counted",
            self.seed
        );
    }
}
