//! The ends of runs, and what becomes of the machine between two.

use super::super::machine::copy_files;
use super::disk::Health;
use super::model::Model;
use super::weather::Fault;
use super::world::{DISKS_MAX, Drive, KEYS, World};
use crate::cache::format::{to_u64, to_usize};
use crate::cache::tier::SpanTier;
use crate::metrics::Metric;

/// Bytes of the log that a start after a kill skips at most.
const SKIPPED: u64 = 6 << 20;

impl World {
    /// Ends the run, changes the machine, and starts again.
    pub(super) fn restart(&mut self) {
        if self.prng.below(3) == 0 {
            self.shut_down();
        } else {
            (0..KEYS).for_each(|n| self.read(n));
        }
        self.held.clear();
        self.begun.clear();
        self.count_faults();
        let running = self.running.take().unwrap();
        let stripes = running.cache.volume.stripes();
        let is_noted = stripes.iter().any(|stripe| stripe.has_opened());
        drop(stripes);
        self.tally.promotions += running.registry.get(Metric::TierPromotions);
        self.tally.wraps += running.registry.get(Metric::CacheWrapCount);
        self.stored += SKIPPED;
        self.cut();
        drop(running);
        self.heal_some();
        if !self.roll_back(is_noted) {
            self.lose_state();
            self.change_disks();
        }
        self.start();
    }

    fn shut_down(&mut self) {
        let cache = self.cache();
        self.wait("a stop", cache.shutdown());
        self.all_written();
    }

    /// A clean stop, and nothing else.
    pub(super) fn stop(&mut self) {
        self.shut_down();
        self.running = None;
    }

    /// The power goes, and nothing else.
    pub(super) fn cut_power(&mut self) {
        let running = self.running.take();
        self.cut_disks_off();
        drop(running);
    }

    /// The process ends, or the machine with it.
    fn cut(&mut self) {
        if self.has(Fault::Power) && self.prng.below(2) == 0 {
            return self.cut_disks_off();
        }
        for drive in &self.drives {
            drive.disk.cut(&mut self.prng);
        }
    }

    fn cut_disks_off(&mut self) {
        self.tally.power_cuts += 1;
        let flushed = self.each_disk(|disk| disk.progress().1);
        for model in &mut self.models {
            model.cut_power(flushed);
        }
        for drive in &self.drives {
            drive.disk.cut_power(&mut self.prng);
        }
    }

    /// What is silent has died by the next start; some of what is ill is well.
    fn heal_some(&mut self) {
        for drive in &self.drives {
            let health = match drive.disk.health() {
                Health::Sound => continue,
                _ if self.prng.below(2) == 0 => Health::Sound,
                Health::Silent | Health::Dead => Health::Dead,
                Health::Failing => Health::Failing,
            };
            drive.disk.set_health(health);
        }
        let ill = |drive: &Drive| drive.disk.health() != Health::Sound;
        self.is_ill = self.drives.iter().any(ill);
    }

    fn change_disks(&mut self) {
        let capacity = |drive: &&mut Drive| drive.tier == SpanTier::Capacity;
        match self.prng.below(8) {
            0 if self.drives.len() < DISKS_MAX => self.plug_in(SpanTier::Capacity),
            0 | 1 => {
                let count = to_u64(self.drives.len());
                let at = to_usize(self.prng.below(count));
                self.drives[at].is_present ^= true;
                self.is_unsure = true;
            }
            2 => self
                .drives
                .iter_mut()
                .for_each(|drive| drive.is_present = true),
            _ => return,
        }
        self.tally.changes += 1;
        if !self.drives.iter().any(|drive| drive.is_present) {
            let mut drives = self.drives.iter_mut();
            drives.find(capacity).unwrap().is_present = true;
        }
    }

    /// The state folder is put back as it was before an earlier start. A disk
    /// that is there has the last run noted, or else nobody could know. Others
    /// are away still, or come back at once.
    fn roll_back(&mut self, is_noted: bool) -> bool {
        // Who was offline is not asked at a start, and can't tell.
        let foul = [Fault::Failing, Fault::Hanging, Fault::Away];
        let is_foul = foul.iter().any(|fault| self.has(*fault));
        if self.older.is_none() || !is_noted || is_foul || self.prng.below(6) > 0 {
            return false;
        }
        self.state = self.older.take().unwrap();
        self.forget();
        if self.prng.below(2) == 0 {
            let drives = self.drives.iter_mut();
            drives.for_each(|drive| drive.is_present = true);
        }
        true
    }

    /// The state folder is lost, or a copy is made of it.
    fn lose_state(&mut self) {
        match self.prng.below(16) {
            0 => {
                self.state = tempfile::tempdir().unwrap();
                self.older = None;
                self.forget();
            }
            1..5 if self.older.is_none() => {
                let copy = tempfile::tempdir().unwrap();
                copy_files(self.state.path(), copy.path());
                self.older = Some(copy);
            }
            _ => {}
        }
    }

    /// What was purged is not known any more: all is dead.
    fn forget(&mut self) {
        self.is_unsure = true;
        self.models.iter_mut().for_each(Model::purge);
    }
}
