//! Room among what waits to be written.

use super::live::LiveStripe;
use crate::cache::format::fragment::fragment_bytes;
use crate::cache::format::to_u64;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl LiveStripe {
    /// Waits until a fragment with so many bytes of head and of body would be
    /// taken, or until none ever will. Cancel-safe.
    pub(in crate::cache) async fn room(self: &Arc<Self>, head: usize, body: usize) {
        let Some(core) = self.core.get() else {
            return;
        };
        let length = to_u64(fragment_bytes(head, body));
        self.wait(|| core.stripe.lock().has_room(length)).await;
    }

    /// Notes that room was waited for too long: the stripe is stalled until
    /// the device completes something.
    pub(in crate::cache) fn note_stall(&self) {
        self.stalled.store(true, Ordering::Relaxed);
    }

    /// Whether the device has completed nothing since room was waited for in
    /// vain.
    pub(in crate::cache) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }
}
