//! A stripe in use: lookups and reads by any thread, writes under its lock.

use super::flush::Flushing;
use super::part::{body_fragment_max, within};
use super::settle::Settling;
use super::sharing::Sharing;
use super::span::LiveSpan;
use super::strangers::Strangers;
use super::wear::Wear;
use crate::base::clock::{Clock, MonoTime};
use crate::cache::directory::{Directory, Place};
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::fragment::Fragment;
use crate::cache::format::span_header::StripeSlot;
use crate::cache::inspect::{SpanState, StripeStatus};
use crate::cache::object::{Miss, NotStored};
use crate::cache::placement::Candidate;
use crate::cache::store::Counters;
use crate::cache::stripe::{Appended, NewFragment, Passing, Refused, Stripe};
use crate::cache::tier::{SpanTier, Tier, WriteCause};
use crate::metrics::Metric;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// A stripe, and what drives it.
pub(in crate::cache) struct LiveStripe {
    pub(in crate::cache) uuid: u128,
    /// The volume that owns it.
    pub(in crate::cache) volume: u32,
    pub(super) span: Arc<LiveSpan>,
    /// Bytes from the span's start.
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) counters: Arc<Counters>,
    /// Empty until it has been read.
    pub(super) core: OnceLock<Core>,
    /// Told whenever something was completed.
    pub(super) moved: Notify,
    /// Room was waited for in vain, and nothing was completed since.
    pub(super) stalled: AtomicBool,
    /// What was configured since it was begun: backlog bytes, sync interval.
    pub(super) configured: Mutex<Option<(u64, Duration)>>,
    /// When the sync under way began.
    pub(super) sync_since: Mutex<Option<MonoTime>>,
    /// Turns of the log that were counted.
    pub(super) turns: AtomicU64,
    pub(super) wear: Wear,
    pub(super) settling: Settling,
    pub(super) flushing: Flushing,
    /// Fragments of bodies that are on their way to clients.
    pub(in crate::cache) sharing: Sharing,
    /// The walk ahead of the cursor; `None` until it has begun.
    pub(super) passing: Mutex<Option<Passing>>,
    /// Held by who walks.
    pub(super) walking: tokio::sync::Mutex<()>,
    /// It was seen to be open in this run.
    pub(super) opened: AtomicBool,
    /// It may have missed a removal before that.
    pub(super) missed: AtomicBool,
    /// Keys to be freed when it has been read.
    pub(super) early_frees: Mutex<BTreeSet<u128>>,
}

/// The stripe itself, once it is known.
#[derive(Debug)]
pub(super) struct Core {
    /// Positions that the last run may not have flushed.
    pub(super) unflushed: Range<u64>,
    /// Bytes of the log.
    pub(super) log_bytes: u64,
    pub(super) stripe: Mutex<Stripe>,
    pub(super) directory: Arc<Directory>,
    pub(super) strangers: Strangers,
}

impl Core {
    /// Turns of the log that the cursor has begun.
    pub(super) fn turns(&self) -> u64 {
        self.directory.cursor() / self.log_bytes.max(1)
    }
}

/// A batch to wait for.
#[derive(Clone, Debug)]
pub(in crate::cache) struct Written {
    pub(in crate::cache) stripe: Arc<LiveStripe>,
    pub(in crate::cache) sequence: u64,
}

impl Written {
    /// Asks that the batch be written without waiting for more, and flushed.
    pub(in crate::cache) fn hurry(&self) {
        self.want_safe();
        if let Some(core) = self.stripe.core.get() {
            core.stripe.lock().flush();
            self.stripe.drive();
        }
    }

    /// Whether the batch is on the device, or can't come there any more and
    /// what is there will not be trusted.
    pub(in crate::cache) fn is_done(&self) -> bool {
        let core = self.stripe.core.get();
        self.stripe.is_retired()
            || core.is_some_and(|core| core.directory.written_sequence() >= self.sequence)
    }
}

/// A verified fragment and its place.
#[derive(Clone, Debug)]
pub(in crate::cache) struct Located {
    pub(in crate::cache) fragment: Fragment,
    pub(in crate::cache) place: Place,
}

impl fmt::Debug for LiveStripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LiveStripe({:032x})", self.uuid)
    }
}

impl LiveStripe {
    /// The stripe in `slot` of `span`, to be begun.
    pub(in crate::cache) fn new(
        span: &Arc<LiveSpan>,
        slot: &StripeSlot,
        clock: &Arc<dyn Clock>,
        counters: &Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            uuid: slot.uuid,
            volume: slot.volume,
            span: Arc::clone(span),
            offset: slot.offset,
            length: slot.length,
            clock: Arc::clone(clock),
            counters: Arc::clone(counters),
            core: OnceLock::new(),
            moved: Notify::new(),
            stalled: AtomicBool::new(false),
            configured: Mutex::default(),
            sync_since: Mutex::default(),
            turns: AtomicU64::new(0),
            wear: Wear::default(),
            settling: Settling::default(),
            flushing: Flushing::default(),
            sharing: Sharing::default(),
            passing: Mutex::default(),
            walking: tokio::sync::Mutex::default(),
            opened: AtomicBool::new(false),
            missed: AtomicBool::new(false),
            early_frees: Mutex::default(),
        })
    }

    /// Sets how much may wait to be written, in bytes, and the shortest time
    /// between two syncs; before it has been read, for then.
    pub(in crate::cache) fn configure(&self, backlog_bytes: u64, sync_interval: Duration) {
        *self.configured.lock() = Some((backlog_bytes, sync_interval));
        self.take_configured();
    }

    /// Puts what was configured into the stripe, if it is there.
    pub(super) fn take_configured(&self) {
        if let Some(core) = self.core.get()
            && let Some((backlog, interval)) = self.configured.lock().take()
        {
            core.stripe.lock().configure(backlog, interval);
        }
    }

    /// The configured path of its span.
    pub(in crate::cache) fn path(&self) -> &Path {
        &self.span.options.path
    }

    /// The tier that its reads count for.
    pub(in crate::cache) fn tier(&self) -> Tier {
        self.span.tier.into()
    }

    /// The tier that it belongs to.
    pub(in crate::cache) fn span_tier(&self) -> SpanTier {
        self.span.tier
    }

    /// The tier that it does not belong to.
    pub(in crate::cache) fn other_tier(&self) -> SpanTier {
        match self.span.tier {
            SpanTier::Fast => SpanTier::Capacity,
            SpanTier::Capacity => SpanTier::Fast,
        }
    }

    /// Whether it is of the fast tier.
    pub(in crate::cache) fn is_fast(&self) -> bool {
        self.span.tier == SpanTier::Fast
    }

    /// See [`Stripe::has_opened`]; false before it has been read.
    pub(in crate::cache) fn has_opened(&self) -> bool {
        let core = self.core.get();
        core.is_some_and(|core| core.stripe.lock().has_opened())
    }

    /// Whether its span is in use.
    pub(in crate::cache) fn is_online(&self) -> bool {
        self.span.is_online()
    }

    /// See [`LiveSpan::is_placed`].
    pub(in crate::cache) fn is_placed(&self) -> bool {
        self.span.is_placed()
    }

    /// See [`LiveSpan::is_retired`].
    pub(super) fn is_retired(&self) -> bool {
        self.span.is_retired()
    }

    /// Names its span.
    pub(in crate::cache) fn span_uuid(&self) -> u128 {
        self.span.uuid
    }

    /// Bytes of its span.
    pub(in crate::cache) fn span_bytes(&self) -> u64 {
        self.span.bytes
    }

    /// For placement.
    pub(in crate::cache) fn candidate(&self) -> Candidate {
        Candidate {
            uuid: self.uuid,
            bytes: self.length,
        }
    }

    /// Bytes of the log, 0 before it is known.
    pub(in crate::cache) fn log_bytes(&self) -> u64 {
        self.core.get().map_or(0, |core| core.log_bytes)
    }

    /// Bytes of the log that have been written to. It begins in cycle 1:
    /// before its first turn is full, what lies behind the cursor is all.
    pub(in crate::cache) fn log_used(&self) -> u64 {
        let core = self.core.get();
        core.map_or(0, |core| {
            let written = core.directory.cursor().saturating_sub(core.log_bytes);
            written.min(core.log_bytes)
        })
    }

    /// Where a place is, in bytes from the span's start.
    pub(in crate::cache) const fn on_span(&self, place: &Place) -> u64 {
        self.offset + place.offset
    }

    /// The first fragment of the key that `accept` takes, read and verified;
    /// waits for the key's page.
    ///
    /// # Errors
    /// Why there is none; a damaged one is freed.
    pub(in crate::cache) async fn find<T>(
        self: &Arc<Self>,
        key: u128,
        accept: impl Fn(Located) -> Option<T>,
    ) -> Result<T, Miss> {
        self.find_within(key, u32::MAX, accept).await
    }

    /// As [`Self::find`], of a fragment that has so many bytes at most: what an
    /// entry says is up to a sixteenth more.
    async fn find_within<T>(
        self: &Arc<Self>,
        key: u128,
        bytes_max: u32,
        accept: impl Fn(Located) -> Option<T>,
    ) -> Result<T, Miss> {
        self.known(key).await;
        let known = self.core.get().filter(|core| core.directory.knows(key));
        let core = known.ok_or(Miss::NotReady)?;
        for place in core.directory.lookup(key) {
            let read = self.read(core, &within(&place, 0, bytes_max)).await;
            let bytes = read.map_err(|error| self.unread(key, &place, &error))?;
            match core.directory.verify(&place, key, &bytes) {
                Ok(fragment) => {
                    if let Some(found) = accept(Located { fragment, place }) {
                        core.directory.mark_read(key, &place);
                        return Ok(found);
                    }
                    self.counters.add(Metric::CacheDirectoryCollision, 1);
                }
                Err(error) => self.passes_over(key, &place, &error)?,
            }
        }
        Err(Miss::Absent)
    }

    /// The body in the fragment of this key, of an object whose full fragments
    /// have so many bytes of body.
    ///
    /// # Errors
    /// Why it can't be had.
    pub(in crate::cache) async fn body_fragment(
        self: &Arc<Self>,
        key: u128,
        full: u32,
    ) -> Result<Bytes, Miss> {
        let body = |located: Located| Some(located.fragment.body);
        self.find_within(key, body_fragment_max(full), body).await
    }

    /// Takes a fragment into the log; it is counted under `cause`.
    ///
    /// # Errors
    /// Why it is not taken.
    pub(in crate::cache) fn append(
        self: &Arc<Self>,
        new: &NewFragment<'_>,
        cause: WriteCause,
    ) -> Result<Appended, NotStored> {
        let core = self.core.get().ok_or(NotStored::NotReady)?;
        if !self.is_online() {
            return Err(NotStored::NotReady);
        }
        let now = self.now();
        let appended = core.append(now, new);
        if appended.is_ok() {
            self.note_append(new, cause);
        }
        self.drive();
        appended.map_err(not_stored)
    }

    /// Frees the key's entries, those that it does not know of yet as soon as it
    /// does; the batch that says so, if there were any that it knows of.
    pub(in crate::cache) fn free(self: &Arc<Self>, key: u128) -> Option<Written> {
        let core = self.core_to_free(key)?;
        if core.directory.knows(key) && core.directory.lookup(key).is_empty() {
            return None;
        }
        let now = self.now();
        let freed = core.free(now, key).ok()?;
        self.drive();
        (freed.entries > 0).then(|| Written {
            stripe: Arc::clone(self),
            sequence: freed.sequence,
        })
    }

    /// Frees one entry of the key; the batch that says so, if it was there.
    pub(in crate::cache) fn free_entry(
        self: &Arc<Self>,
        key: u128,
        entry: DirEntry,
    ) -> Option<Written> {
        let core = self.core.get()?;
        let now = self.now();
        let freed = core.stripe.lock().free_entry(now, key, entry);
        self.drive();
        (freed.entries > 0).then(|| Written {
            stripe: Arc::clone(self),
            sequence: freed.sequence,
        })
    }

    /// The last batch, unless no power cut takes it: with it, all that was taken
    /// out so far is written down.
    pub(in crate::cache) fn unflushed(self: &Arc<Self>) -> Option<Written> {
        let core = self.core.get()?;
        let written = Written {
            stripe: Arc::clone(self),
            sequence: core.stripe.lock().last_sequence(),
        };
        (!written.is_safe()).then_some(written)
    }

    /// Its state: its span's, unless that is in use.
    pub(super) fn state(&self) -> SpanState {
        if !self.is_online() {
            let errors = self.span.errors();
            return SpanState::Offline { errors };
        }
        let Some(core) = self.core.get() else {
            return SpanState::Loading;
        };
        let oldest = core.directory.cursor().saturating_sub(core.log_bytes);
        if core.directory.suspect_below() > oldest {
            SpanState::Suspect
        } else {
            SpanState::Online
        }
    }

    /// Its figures. Reads the directory.
    pub(super) fn status(&self) -> StripeStatus {
        let census = self.core.get().map(|core| core.directory.census());
        StripeStatus {
            uuid: self.uuid,
            volume: self.volume,
            state: self.state(),
            bytes_total: self.log_bytes(),
            bytes_used: self.log_used(),
            entries_total: census.map_or(0, |census| census.slots),
            entries_used: census.map_or(0, |census| census.valid),
            pages_unread: self.pages_unread(),
        }
    }

    pub(super) fn now(&self) -> MonoTime {
        self.clock.mono()
    }
}

const fn not_stored(refused: Refused) -> NotStored {
    match refused {
        Refused::Backlog => NotStored::Backlog,
        Refused::TooLarge => NotStored::TooLarge,
        Refused::Superseded => NotStored::Replaced,
        Refused::Unread | Refused::Closed => NotStored::NotReady,
    }
}
