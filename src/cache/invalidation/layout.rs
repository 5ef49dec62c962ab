//! Which stripes took part in the placement of keys, remembered over restarts:
//! from this a start sees which have come since.

use super::state::{State, StateError};
use std::collections::HashMap;

/// The position of a stripe that holds only what belongs on it.
pub(crate) const SETTLED: u64 = 0;
/// The position of a stripe whose cursor was not known when the placement
/// changed.
pub(crate) const UNDATED: u64 = u64::MAX;

/// The name of the rules of hosts; stripes have longer ones.
const HOSTING: &[u8] = b"hosting";

/// What is remembered of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayoutRow {
    /// The volume that it belongs to.
    pub(crate) volume: u32,
    /// Whether it is of the fast tier.
    pub(crate) fast: bool,
    /// The position of its cursor from which on it holds only keys that belong
    /// on it; [`SETTLED`] or [`UNDATED`].
    pub(crate) settles_at: u64,
}

/// The stripes that take part, by UUID.
pub(crate) type Layout = HashMap<u128, LayoutRow>;

/// The layout of `stripes`, each with whether it has never held anything, after
/// the one that is `known`. Where a stripe has come, or `hosts_moved` to other
/// volumes, keys move, and every stripe may hold some that belong elsewhere now.
pub(crate) fn next_layout(
    known: &Layout,
    stripes: &[(u128, LayoutRow, bool)],
    hosts_moved: bool,
) -> Layout {
    let stays = |uuid: &u128, row: &LayoutRow| {
        let before = known.get(uuid);
        before.filter(|before| (before.volume, before.fast) == (row.volume, row.fast))
    };
    let mut each = stripes.iter();
    let is_same = !hosts_moved && each.all(|(uuid, row, _)| stays(uuid, row).is_some());
    let rows = stripes.iter().map(|(uuid, row, is_new)| {
        let settles_at = match stays(uuid, row) {
            Some(before) if is_same => before.settles_at,
            None if *is_new => SETTLED,
            Some(_) | None => UNDATED,
        };
        (*uuid, LayoutRow { settles_at, ..*row })
    });
    rows.collect()
}

impl State {
    /// The layout as it was written last; empty if there is none.
    ///
    /// # Errors
    /// When the state can't be read.
    pub(crate) fn layout(&self) -> Result<Layout, StateError> {
        let mut layout = Layout::new();
        for row in &self.layout {
            let (uuid, bytes) = row?;
            let uuid = uuid.as_ref().try_into().map(u128::from_le_bytes);
            if let (Ok(uuid), Some(row)) = (uuid, LayoutRow::decode(&bytes)) {
                layout.insert(uuid, row);
            }
        }
        Ok(layout)
    }

    /// Writes the whole layout down; it is durable on return.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn set_layout(&self, layout: &Layout) -> Result<(), StateError> {
        let mut batch = sled::Batch::default();
        for name in self.layout.iter().keys() {
            let name = name?;
            if name != HOSTING {
                batch.remove(name);
            }
        }
        for (uuid, row) in layout {
            batch.insert(&uuid.to_le_bytes(), &row.encode());
        }
        self.layout.apply_batch(batch)?;
        self.layout.flush()?;
        Ok(())
    }

    /// What tells the rules of hosts apart that held last; 0 for none.
    ///
    /// # Errors
    /// When the state can't be read.
    pub(crate) fn hosting(&self) -> Result<u128, StateError> {
        let bytes = self.layout.get(HOSTING)?;
        let digest = bytes.and_then(|bytes| bytes.as_ref().try_into().ok());
        Ok(digest.map_or(0, u128::from_le_bytes))
    }

    /// Writes down which rules of hosts hold, after what they moved; it is
    /// durable on return.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn set_hosting(&self, digest: u128) -> Result<(), StateError> {
        self.layout.insert(HOSTING, &digest.to_le_bytes())?;
        self.layout.flush()?;
        Ok(())
    }

    /// Changes a stripe's row, if it is still the one from before.
    ///
    /// # Errors
    /// When the state can't be written.
    pub(crate) fn change_row(
        &self,
        stripe: u128,
        (from, to): (LayoutRow, LayoutRow),
    ) -> Result<(), StateError> {
        let (from, to) = (from.encode(), to.encode());
        let name = stripe.to_le_bytes();
        // A newer layout stays: it is no error that this row lost.
        drop(self.layout.compare_and_swap(name, Some(&from), Some(&to))?);
        Ok(())
    }
}

impl LayoutRow {
    fn encode(self) -> [u8; 13] {
        let mut bytes = [0; 13];
        bytes[..4].copy_from_slice(&self.volume.to_le_bytes());
        bytes[4] = u8::from(self.fast);
        bytes[5..].copy_from_slice(&self.settles_at.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 13] = bytes.try_into().ok()?;
        Some(Self {
            volume: u32::from_le_bytes(bytes[..4].try_into().ok()?),
            fast: bytes[4] == 1,
            settles_at: u64::from_le_bytes(bytes[5..].try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn row(settles_at: u64) -> LayoutRow {
        LayoutRow {
            volume: 7,
            fast: true,
            settles_at,
        }
    }

    fn settling(known: &Layout, stripes: &[(u128, LayoutRow, bool)]) -> Vec<u64> {
        let next = next_layout(known, stripes, false);
        let uuids = stripes.iter().map(|(uuid, ..)| uuid);
        uuids.map(|uuid| next[uuid].settles_at).collect()
    }

    #[test]
    fn stripes_that_go_or_stay_leave_the_others_as_they_are() {
        let known = Layout::from([(1, row(5)), (2, row(SETTLED)), (3, row(9))]);
        let all = [(1, row(0), false), (2, row(0), false), (3, row(0), false)];
        assert_eq!(settling(&known, &all), [5, SETTLED, 9]);
        assert_eq!(settling(&known, &all[..2]), [5, SETTLED]);
    }

    #[test]
    fn a_stripe_that_comes_unsettles_all_but_itself_if_it_is_new() {
        let known = Layout::from([(1, row(5)), (2, row(SETTLED))]);
        let new = [(1, row(0), false), (2, row(0), false), (3, row(0), true)];
        assert_eq!(settling(&known, &new), [UNDATED, UNDATED, SETTLED]);
        let old = [(1, row(0), false), (3, row(0), false)];
        assert_eq!(settling(&known, &old), [UNDATED, UNDATED]);
    }

    #[test]
    fn a_stripe_of_another_tier_or_volume_has_come() {
        let known = Layout::from([(1, row(SETTLED)), (2, row(SETTLED))]);
        for other in [
            LayoutRow {
                fast: false,
                ..row(0)
            },
            LayoutRow {
                volume: 8,
                ..row(0)
            },
        ] {
            let moved = [(1, row(0), false), (2, other, false)];
            assert_eq!(settling(&known, &moved), [UNDATED, UNDATED]);
        }
    }

    #[test]
    fn other_rules_of_hosts_unsettle_all() {
        let known = Layout::from([(1, row(SETTLED))]);
        let next = next_layout(&known, &[(1, row(0), false)], true);
        assert_eq!(next[&1].settles_at, UNDATED);
        let state = State::open(None, 1).unwrap();
        state.set_hosting(7).unwrap();
        state.set_layout(&known).unwrap();
        assert_eq!(state.hosting().unwrap(), 7);
        assert_eq!(state.layout().unwrap(), known);
    }

    #[test]
    fn the_layout_comes_back_from_the_state_and_a_stale_change_loses() {
        let state = State::open(None, 1).unwrap();
        assert_eq!(state.layout().unwrap(), Layout::new());
        let first = Layout::from([(1, row(5)), (2, row(UNDATED))]);
        state.set_layout(&first).unwrap();
        assert_eq!(state.layout().unwrap(), first);
        let second = Layout::from([(2, row(UNDATED)), (3, row(SETTLED))]);
        state.set_layout(&second).unwrap();
        state.change_row(2, (row(4), row(SETTLED))).unwrap();
        assert_eq!(state.layout().unwrap(), second);
        state.change_row(2, (row(UNDATED), row(8))).unwrap();
        assert_eq!(state.layout().unwrap()[&2], row(8));
    }
}
