//! Epochs and the rules of purges and removals: nothing dead comes back.
//!
//! Every fill remembers the epoch at which it began. A purge or a removal
//! takes the next epoch for its key, and what began before is dead. A clear
//! does so for all keys of a volume, or of all.

mod attendance;
mod copied;
mod layout;
mod lineage;
mod rules;
mod served;
mod spare;
mod standing;
mod state;

pub(super) use copied::StateCopy;
pub(super) use layout::{LayoutRow, SETTLED, UNDATED, next_layout};
pub(super) use lineage::Lineage;
pub(super) use rules::{Clears, Rules, Subject};
pub(super) use state::{Presence, State, StateError};
