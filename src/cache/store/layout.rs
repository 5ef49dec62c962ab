//! Changes of the placement: keys move only once it is written down that they
//! may have left copies behind.

use super::Cache;
use super::open::live_spans;
use crate::cache::hosting::Hosting;
use crate::cache::invalidation::{LayoutRow, SETTLED, State, UNDATED, next_layout};
use crate::cache::volume::{LiveSpan, LiveStripe};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Writes down which stripes take part from now on, and tells them what they
/// may hold from before. Gives those that do.
pub(super) fn take_part(
    state: &State,
    spans: &[Arc<LiveSpan>],
    hosting: &Hosting,
) -> Vec<Arc<LiveStripe>> {
    let placed = spans.iter().filter(|span| span.is_placed());
    let stripes: Vec<Arc<LiveStripe>> = placed.flat_map(|span| span.stripes()).collect();
    let known = state.layout().unwrap_or_else(|error| {
        tracing::error!(%error, "which stripes took part before is not known: all are asked");
        Default::default()
    });
    let rows: Vec<(u128, LayoutRow, bool)> = stripes
        .iter()
        .map(|stripe| (stripe.uuid, stripe.layout_row(UNDATED), stripe.is_new()))
        .collect();
    let hosts_moved = state.hosting().ok() != Some(hosting.digest());
    let next = next_layout(&known, &rows, hosts_moved);
    let written = match (next != known, hosts_moved) {
        (false, false) => Ok(()),
        (_, false) => state.set_layout(&next),
        (_, true) => {
            let layout = state.set_layout(&next);
            layout.and_then(|()| state.set_hosting(hosting.digest()))
        }
    };
    if let Err(error) = written {
        tracing::error!(%error, "which stripes take part could not be written down");
    }
    let mut unsettled = stripes;
    unsettled.retain(|stripe| {
        let row = next.get(&stripe.uuid).copied();
        let row = row.unwrap_or_else(|| stripe.layout_row(UNDATED));
        stripe.set_settling(row);
        row.settles_at == UNDATED
    });
    unsettled
}

impl Cache {
    /// Of each span that is in use, the volumes that it has stripes of. Reads no
    /// directory.
    #[must_use]
    pub fn volumes_in_use(&self) -> Vec<BTreeSet<u32>> {
        let mut spans = live_spans(&self.spans.lock());
        spans.retain(|span| span.state().is_in_use());
        let volumes = |span: &Arc<LiveSpan>| {
            let stripes = span.stripes();
            stripes.iter().map(|stripe| stripe.volume).collect()
        };
        spans.iter().map(volumes).collect()
    }

    /// Places keys anew over the spans that are online. On the cache's thread
    /// only, so that one change comes after the other.
    pub(super) fn place_anew(&self) {
        self.remember_ends();
        let live = live_spans(&self.spans.lock());
        let hosting = self.hosting.load_full();
        let unsettled = take_part(&self.state, &live, &hosting);
        self.volume.replace(&live, &hosting);
        // Who asked the placement before has stored by it when this returns.
        self.slots.pass();
        unsettled.iter().for_each(|stripe| stripe.date_change());
        self.publish();
    }

    /// Has the objects of hosts go to other volumes from now on; what is stored
    /// elsewhere is no longer found. Blocks until that holds.
    pub fn host(&self, hosting: Hosting) {
        let before = self.hosting.swap(Arc::new(hosting));
        if *before != **self.hosting.load() {
            self.thread.place_anew_and_wait();
        }
    }

    /// Writes down which stripes have gone round since the last change.
    pub(super) fn settle(&self) {
        for stripe in self.volume.stripes() {
            let Some(rows) = stripe.settling_to_write() else {
                continue;
            };
            if rows.1.settles_at == SETTLED {
                tracing::info!(path = %stripe.path().display(), stripe = %format_args!("{:032x}", stripe.uuid),
                    "gone round since the spans changed: it is asked for its own keys only");
            }
            if let Err(error) = self.state.change_row(stripe.uuid, rows) {
                tracing::error!(%error, "the cache's state can't be written");
            }
        }
    }
}
