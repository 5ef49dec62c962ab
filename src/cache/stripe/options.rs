//! What an administrator may set of a stripe, and who it is.

use crate::base::size::MIB;
use std::time::Duration;

/// How a stripe writes. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeOptions {
    /// The aggregation buffer: the longest batch.
    pub buffer_bytes: u32,
    /// A batch is written when this much is waiting.
    pub flush_bytes: u32,
    /// A batch is written when its first row is this old. Less than the second
    /// that a kill may cost: who drives the stripe looks at it now and then, a
    /// head may wait for other stripes' rows before it, and writes take time.
    pub flush_after: Duration,
    /// Appends are refused when this much waits behind the write in flight.
    pub backlog_bytes: u64,
    /// Body bytes of a full fragment (`target_fragment_size`).
    pub fragment_bytes: u32,
    /// The longest head that an object can have: key text and proxy's meta.
    pub head_bytes_max: u32,
    /// The shortest time between the beginnings of two syncs.
    pub sync_interval: Duration,
}

impl Default for StripeOptions {
    fn default() -> Self {
        Self {
            buffer_bytes: mib(4),
            flush_bytes: mib(1),
            flush_after: Duration::from_millis(600),
            backlog_bytes: 8 * MIB,
            fragment_bytes: mib(1),
            head_bytes_max: kib(256),
            sync_interval: Duration::from_secs(60),
        }
    }
}

const fn mib(count: u32) -> u32 {
    count << 20
}

const fn kib(count: u32) -> u32 {
    count << 10
}

/// Who a stripe is, and the counters of the start it takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeIdentity {
    /// Names the stripe for ever; `init` and `clear` give a new one.
    pub uuid: u128,
    /// The volume it belongs to.
    pub volume: u32,
    /// Names the installation and its run (kept in sled).
    pub instance: u128,
    /// The counter of starts and of spans coming or going.
    pub run: u64,
    /// The highest invalidation epoch that the installation knows.
    pub epoch: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_default_fragment_fits_a_default_batch() {
        let options = StripeOptions::default();
        assert!(options.fragment_bytes + options.head_bytes_max < options.buffer_bytes / 2);
        assert_eq!(u64::from(options.head_bytes_max), 256 << 10);
    }
}
