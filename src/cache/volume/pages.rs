//! The pages of a stripe's directory after a start: who wants one asks for it,
//! and one thread reads them all, a few at a time.

use super::live::{Core, LiveStripe};
use crate::base::aligned::AlignedBuf;
use crate::cache::stripe::PageRead;
use crate::device::DeviceError;
use std::sync::Arc;

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

    /// Reads all pages, one read at a time, so that requests have the device
    /// to themselves but for that; those that are asked for come first.
    pub(super) fn read_pages(self: &Arc<Self>, core: &Core) {
        while let Some(pages) = self.next_pages(core) {
            self.take_pages(core, pages);
            self.drive();
            self.moved.notify_waiters();
        }
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

    fn next_pages(&self, core: &Core) -> Option<PageRead> {
        let next = core.stripe.lock().next_pages();
        next.filter(|_| self.is_online())
    }

    /// Reads pages at once, or, where that fails, each by itself: one bad block
    /// is to cost no more than its own page.
    fn take_pages(&self, core: &Core, pages: PageRead) {
        let page_bytes = usize::try_from(pages.page_bytes).unwrap_or(usize::MAX);
        let length = usize::try_from(pages.bytes()).unwrap_or(usize::MAX);
        let whole = self.page_bytes(pages.offset, length);
        let mut parts = whole.as_deref().unwrap_or_default().chunks(page_bytes);
        for (page, offset) in pages.each() {
            let again = whole.is_none() && pages.count > 1 && self.is_online();
            let alone = again.then(|| self.page_bytes(offset, page_bytes)).flatten();
            let bytes = alone.as_ref().map(AlignedBuf::as_ref).or(parts.next());
            let (now, bytes) = (self.now(), bytes.unwrap_or_default());
            core.stripe.lock().take_page(now, page, bytes);
        }
    }

    /// Reads a part of the directory; a device that is silent is given up, since
    /// each further read might take as long.
    fn page_bytes(&self, offset: u64, length: usize) -> Option<AlignedBuf> {
        let read = self.read_at(offset, length);
        let read = read.inspect_err(|error| {
            if matches!(error, DeviceError::TimedOut { .. }) {
                self.give_up(&error.to_string());
            }
        });
        read.ok()
    }
}
