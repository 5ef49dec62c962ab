//! What a stripe missed, and what the state beside it does.

use super::{Recovery, RecoveryReport};
use crate::base::planted::{Planted, is_planted};
use crate::cache::directory::Directory;
use crate::cache::format::stripe_header::{ChainPoint, StripeContent};
use crate::cache::stripe::geometry::Geometry;
use crate::cache::stripe::redo::Redo;
use crate::cache::stripe::{Parts, Stripe, log_shape};

impl Recovery {
    /// A stripe that missed a run may hold what has been replaced elsewhere.
    pub(super) fn judge_absence(&mut self, header: &StripeContent, log_end: u64) {
        if is_planted(Planted::AwayTrusted) {
            return;
        }
        let missed = self.run < self.start.last_run || self.is_state_lost(header);
        if missed || self.doubt {
            self.suspect_below = log_end;
            self.report.suspect = true;
        }
    }

    /// Whether the state beside the stripe does not know what the stripe took
    /// part in: it began anew, is an older copy, or is another installation's.
    pub(super) fn is_state_lost(&self, header: &StripeContent) -> bool {
        if is_planted(Planted::LostStateTrusted) {
            return false;
        }
        let identity = &self.start.identity;
        let is_back = self.start.last_run == u64::MAX;
        let is_later = self.run > identity.run || (self.run == identity.run && !is_back);
        let is_strange = self.start.known_instance != Some(header.instance);
        is_strange || self.epoch > identity.epoch || is_later
    }

    /// The stripe without what it held, from the next batch on. As soon as its
    /// header is written that holds for good: ring and log are read from there.
    pub(super) fn forget_all(
        mut self,
        header: StripeContent,
        geometry: Geometry,
        chain: ChainPoint,
    ) -> (Stripe, RecoveryReport) {
        let mut redo = Redo::new(self.ring_next, chain, self.ring_next.position);
        redo.pass(chain);
        let uuid = self.start.identity.uuid;
        let shape = log_shape(&geometry);
        let parts = Parts {
            identity: self.start.identity,
            geometry,
            options: self.start.options,
            directory: Directory::new(uuid, shape, geometry.pages(), chain.position),
            header: StripeContent {
                generation: header.generation + 1,
                is_opened: false,
                good: None,
                log: chain,
                ring: self.ring_next,
                ..header
            },
            chain,
            redo,
        };
        self.report.dead = true;
        (Stripe::assemble(parts), self.report)
    }
}
