//! The pages of a stripe's directory after a start: who wants one asks for it,
//! and one thread reads them all, a few at a time.

use super::live::{Core, LiveStripe};
use crate::base::aligned::AlignedBuf;
use crate::cache::stripe::{PageRead, Stripe};
use crate::device::{DeviceError, Pace, Request, Wanted, read_each};
use std::sync::Arc;
use std::time::Duration;

/// Reads of pages under way at a time: one while another's bytes are taken, so
/// that the device rests for neither, and requests hardly wait for them.
const READS: usize = 2;
/// Keys that may wait to be freed until the stripe has been read.
const EARLY_FREES: usize = 1 << 18;

impl LiveStripe {
    /// Whether it is in use: all rows have been read, and pages are read as
    /// they are asked for.
    pub(in crate::cache) fn is_judged(&self) -> bool {
        self.core.get().is_some()
    }

    /// Whether all that it holds is known: no page is left to be read.
    pub(in crate::cache) fn is_loaded(&self) -> bool {
        let core = self.core.get();
        core.is_some_and(|core| core.stripe.lock().is_read())
    }

    /// Pages of the directory that are yet to be read.
    pub(in crate::cache) fn pages_unread(&self) -> u64 {
        let core = self.core.get();
        core.map_or(0, |core| core.stripe.lock().page_count().left.into())
    }

    /// Whether what it holds of a key is known: its page has been read.
    pub(in crate::cache) fn knows(&self, key: u128) -> bool {
        let core = self.core.get();
        core.is_some_and(|core| core.directory.knows(key))
    }

    /// What is to be asked to free a key: nothing while it is being read, then the
    /// key waits for that.
    pub(super) fn core_to_free(&self, key: u128) -> Option<&Core> {
        if let Some(core) = self.core.get() {
            return Some(core);
        }
        let mut early = self.early_frees.lock();
        // It may have been read meanwhile, and who read it looks here next.
        let core = self.core.get();
        if core.is_none() && early.len() < EARLY_FREES {
            early.insert(key);
        }
        core
    }

    /// Has the stripe, now that it has been read, free the keys that waited for
    /// that; `put_in_use` is to follow before anybody else has a key wait.
    pub(super) fn free_early(&self, mut stripe: Stripe, put_in_use: impl FnOnce(Stripe)) {
        let mut early = self.early_frees.lock();
        let keys = std::mem::take(&mut *early);
        if keys.len() >= EARLY_FREES {
            self.log_doubt();
            stripe.doubt_unread();
        }
        for key in keys {
            stripe.free_when_read(self.now(), key);
        }
        put_in_use(stripe);
    }

    fn log_doubt(&self) {
        tracing::warn!(
            path = %self.path().display(),
            keys = EARLY_FREES,
            "more was changed than is remembered while the directory is read: \
             what the span held before is validated with its origin when it is used"
        );
    }

    /// Asks for the page of a key before the others.
    pub(in crate::cache) fn ask_for(&self, key: u128) {
        if let Some(core) = self.core.get()
            && !core.directory.knows(key)
        {
            core.stripe.lock().ask_for_key(key);
        }
    }

    /// Asks for the page of a key, and waits until it has been read or never
    /// will be.
    pub(in crate::cache) async fn known(&self, key: u128) {
        self.until(|| {
            self.ask_for(key);
            self.knows(key)
        })
        .await;
    }

    /// Waits until the page of a bucket has been read or never will be.
    pub(in crate::cache) async fn bucket_known(&self, bucket: u64) {
        self.until(|| {
            let core = self.core.get();
            core.is_some_and(|core| core.directory.knows_bucket(bucket))
        })
        .await;
    }

    /// Waits until it is in use, or given up.
    pub(in crate::cache) async fn judged(&self) {
        self.until(|| self.is_judged()).await;
    }

    /// Waits until all pages have been read, or it is given up.
    pub(in crate::cache) async fn loaded(&self) {
        self.until(|| self.is_loaded()).await;
    }

    async fn until(&self, done: impl Fn() -> bool) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if done() || !self.is_online() {
                return;
            }
            moved.await;
        }
    }

    /// Reads all pages; those that are asked for come first.
    pub(super) fn read_pages(self: &Arc<Self>, core: &Core) {
        let device = self.span.device();
        let patience = device.map_or(Duration::ZERO, |device| device.patience());
        let pace = Pace {
            depth: READS,
            patience,
        };
        let submit = |request: Request| match self.span.device() {
            Some(device) => device.submit_to_block(request),
            None => request.fail(DeviceError::Closed),
        };
        read_each(
            pace,
            submit,
            || self.next_pages(core),
            |pages, read| {
                self.take_pages(core, pages, read);
                self.drive();
                self.moved.notify_waiters();
            },
        );
        core.directory.gather();
        let count = core.stripe.lock().page_count();
        tracing::info!(
            path = %self.path().display(),
            pages = count.read,
            bad_pages = count.bad,
            pages_left = count.left,
            "directory read"
        );
        if count.bad > 0 {
            // One block of the page table may have cost them all.
            self.note_damage();
        }
    }

    fn next_pages(&self, core: &Core) -> Option<Wanted<PageRead>> {
        let next = core.stripe.lock().next_pages();
        let pages = next.filter(|_| self.is_online())?;
        Some(Wanted {
            name: pages,
            offset: self.offset + pages.offset,
            len: usize::try_from(pages.bytes()).unwrap_or(usize::MAX),
        })
    }

    /// Takes pages that were read at once; where that failed, each is read by
    /// itself: one bad block is to cost no more than its own page.
    fn take_pages(&self, core: &Core, pages: PageRead, read: Result<AlignedBuf, DeviceError>) {
        let page_bytes = usize::try_from(pages.page_bytes).unwrap_or(usize::MAX);
        let whole = self.if_read(self.noted(pages.offset, read));
        let mut parts = whole.as_deref().unwrap_or_default().chunks(page_bytes);
        for (page, offset) in pages.each() {
            let again = whole.is_none() && pages.count > 1 && self.is_online();
            let alone = again.then(|| self.if_read(self.read_at(offset, page_bytes)));
            let alone = alone.flatten();
            let bytes = alone.as_ref().map(AlignedBuf::as_ref).or(parts.next());
            let (now, bytes) = (self.now(), bytes.unwrap_or_default());
            core.stripe.lock().take_page(now, page, bytes);
        }
    }

    /// What was read of the directory, if it was; a device that is silent is
    /// given up, since each further read might take as long.
    fn if_read(&self, read: Result<AlignedBuf, DeviceError>) -> Option<AlignedBuf> {
        let read = read.inspect_err(|error| {
            if matches!(error, DeviceError::TimedOut { .. }) {
                self.give_up(&error.to_string());
            }
        });
        read.ok()
    }
}
