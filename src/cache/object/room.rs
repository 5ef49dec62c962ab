//! Room on a stripe for what a writer holds back.

use crate::cache::volume::LiveStripe;
use std::sync::Arc;

/// What a writer waits for, apart from the writer itself.
#[derive(Clone, Debug)]
pub struct Room {
    pub(super) stripe: Arc<LiveStripe>,
    /// Bytes of the fragment's head and body.
    pub(super) head: usize,
    pub(super) body: usize,
}

impl Room {
    /// Waits until there is room, or never will be; another store may take it
    /// first. Without end while the device answers nothing. Cancel-safe.
    pub async fn come(&self) {
        self.stripe.room(self.head, self.body).await;
    }

    /// Says that it was waited for too long: until the stripe's device has
    /// completed something, stores that begin there are refused.
    pub fn note_stall(&self) {
        self.stripe.note_stall();
    }
}
