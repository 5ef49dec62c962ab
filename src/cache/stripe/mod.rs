//! One cyclic log with its directory, without I/O, clock or threads: plans go
//! out, completions come in.
//!
//! The driver keeps a `Mutex<Stripe>`, held for memory work only, and hands
//! the `Arc<Directory>` to all readers. After any `append`, `free`, `flush`,
//! `sync`, `close` or `complete` it polls until there is no plan. Offsets are
//! in bytes from the stripe's start.
//!
//! ```text
//! Stripe::format(identity, geometry, options)    a new stripe; its headers are its first plans
//! Recovery::new(..) → step(), complete() …       an old one: reads come out, bytes go in
//!   → finish()                                   the stripe, and a report
//! its pages: stripe.next_pages() → take_page()   asked for by stripe.ask_for(page) first, then the rest
//!
//! reading:  directory.lookup(key hash)           up to 16 places, no lock, no allocation
//!           directory.is_buffered(&place)        then stripe.buffered(&place); if that is none,
//!                                                or it is not buffered: read the device
//!           directory.verify(&place, key, bytes) OtherKey: the next match; else a fragment or a miss
//! writing:  stripe.append(now, &fragment)        readable at once; stripe.free(now, key, &keep)
//!           stripe.poll(now) → run each plan → stripe.complete(now, plan id, outcome)
//! ```

mod batch;
mod drive;
mod frees;
mod geometry;
mod load;
mod log;
mod options;
mod passing;
mod plan;
mod recover;
mod redo;
mod replay;
mod sync;

pub use geometry::{Geometry, GeometryError, MAX_STRIPE_BYTES, MIN_LOG_BYTES};
pub use load::{PageCount, PageRead};
pub use options::{StripeIdentity, StripeOptions};
pub use passing::{Passing, table_of};
pub use plan::{Action, Appended, Cause, Completion, Freed, Outcome, Plan, PlanId, Refused};
pub use recover::{NotRecovered, Recovery, RecoveryReport, RecoveryStart, RecoveryStep};

use crate::base::clock::MonoTime;
use crate::cache::directory::{Directory, Hand, LogShape, Place};
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::directory_page::PageMark;
use crate::cache::format::fragment::FragmentKind;
use crate::cache::format::stripe_header::{ChainPoint, GoodCopy, StripeContent};
use crate::cache::format::to_usize;
use batch::{Filling, Sealed};
use bytes::Bytes;
use frees::UnflushedFrees;
use load::Load;
use redo::Redo;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use sync::SyncRun;

/// A fragment to append.
#[derive(Clone, Copy, Debug)]
pub struct NewFragment<'a> {
    /// The hash of its key.
    pub key_hash: u128,
    /// What it is of its object.
    pub kind: FragmentKind,
    /// The encoded object head; empty for a body fragment.
    pub meta: &'a [u8],
    /// The body, in pieces.
    pub body: &'a [Bytes],
    /// Entries that were read and hold other keys of the same tag: they stay.
    /// Who drives the stripe knows them.
    pub keep: &'a [DirEntry],
    /// The entry that this is a copy or an update of: if it is gone, so is the
    /// reason for this one.
    pub copy_of: Option<DirEntry>,
    /// To be kept when the cursor comes, if there is room for another such
    /// fragment: its entry says whether there was.
    pub pinned: bool,
}

/// One stripe. See the module for how it is driven.
#[derive(Debug)]
pub struct Stripe {
    identity: StripeIdentity,
    geometry: Geometry,
    options: StripeOptions,
    directory: Arc<Directory>,
    hand: Hand,
    filling: Option<Filling>,
    sealed: VecDeque<Sealed>,
    /// Where the next batch goes.
    chain: ChainPoint,
    redo: Redo,
    /// Pages that are yet to be read.
    load: Option<Load>,
    pages: PageCount,
    sync: Option<SyncRun>,
    /// What the newest header says.
    /// Where the walk ahead of the cursor has come to.
    evacuation: u64,
    header: StripeContent,
    /// What is yet to be written before the first batch, last one first.
    opening: Vec<drive::Opening>,
    marks: [Vec<PageMark>; 2],
    /// Of the page table that the sync under way has written.
    table_checksum: u32,
    last_sync: MonoTime,
    last_sync_position: u64,
    sync_asked: bool,
    /// Batches up to this one are flushed without waiting for more.
    flush_through: u64,
    /// The last batch that failed for good.
    lost_through: u64,
    frees: UnflushedFrees,
    state: State,
    jobs: Vec<(PlanId, drive::Job)>,
    next_plan: u64,
}

/// Whether a stripe takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It does.
    Open,
    /// It writes out what it has, then a clean ring block.
    Closing,
    /// That is written and is being flushed.
    Flushing,
    /// All is on the device.
    Closed,
    /// A write that it can't do without failed.
    Failed,
}

/// Where a new stripe's log begins: in cycle 1, so that a cycle before it has
/// a number too.
const fn first_batch(log_bytes: u64) -> ChainPoint {
    ChainPoint {
        position: log_bytes,
        sequence: 1,
        link: 0,
    }
}

/// What a stripe is made of, new or recovered.
#[derive(Debug)]
struct Parts {
    identity: StripeIdentity,
    geometry: Geometry,
    options: StripeOptions,
    directory: Directory,
    header: StripeContent,
    chain: ChainPoint,
    redo: Redo,
}

impl Stripe {
    /// A new, empty stripe. Nothing of what lies on the device counts, since
    /// the UUID is new; batches wait until the headers are written.
    #[must_use]
    pub fn format(identity: StripeIdentity, geometry: Geometry, options: StripeOptions) -> Self {
        let chain = first_batch(geometry.log_bytes());
        let ring = ChainPoint {
            position: 0,
            sequence: 1,
            link: 0,
        };
        let shape = log_shape(&geometry);
        let parts = Parts {
            identity,
            geometry,
            options,
            directory: Directory::new(identity.uuid, shape, geometry.pages(), chain.position),
            header: first_header(&identity, &geometry, chain, ring),
            chain,
            redo: Redo::new(ring, chain, ring.position),
        };
        Self::assemble(parts)
    }

    fn assemble(parts: Parts) -> Self {
        let pages = to_usize(u64::from(parts.geometry.pages()));
        let marks = vec![PageMark::default(); pages];
        parts
            .directory
            .set_written(parts.chain.position, parts.chain.sequence - 1);
        Self {
            identity: parts.identity,
            geometry: parts.geometry,
            options: parts.options,
            directory: Arc::new(parts.directory),
            hand: Hand::default(),
            filling: None,
            sealed: VecDeque::new(),
            chain: parts.chain,
            redo: parts.redo,
            load: None,
            pages: PageCount::default(),
            sync: None,
            evacuation: parts.header.evacuation,
            header: parts.header,
            opening: drive::Opening::ALL.to_vec(),
            marks: [marks.clone(), marks],
            table_checksum: 0,
            last_sync: MonoTime::default(),
            last_sync_position: parts.chain.position,
            sync_asked: false,
            flush_through: 0,
            lost_through: 0,
            frees: UnflushedFrees::unknown_through(parts.chain.sequence - 1),
            state: State::Open,
            jobs: Vec::new(),
            next_plan: 0,
        }
    }

    /// The index, to be shared with readers.
    #[must_use]
    pub fn directory(&self) -> Arc<Directory> {
        Arc::clone(&self.directory)
    }

    /// Where its parts lie.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// How it writes.
    #[must_use]
    pub const fn options(&self) -> &StripeOptions {
        &self.options
    }

    /// Sets how many bytes may wait to be written, and the shortest time
    /// between the beginnings of two syncs.
    pub const fn configure(&mut self, backlog_bytes: u64, sync_interval: Duration) {
        self.options.backlog_bytes = backlog_bytes;
        self.options.sync_interval = sync_interval;
    }

    /// Whether it takes no more writes because one that it can't do without
    /// failed: its span goes offline.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed)
    }

    /// Whether the headers that note this run are on the device. Only then may
    /// the run be given as `last_run` to a later recovery.
    #[must_use]
    pub const fn has_opened(&self) -> bool {
        self.opening.is_empty()
    }

    /// Whether a `close` is done: all is on the device, nothing is in flight.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Whether nothing waits to be written and nothing is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let waits = self.filling.is_some() || !self.sealed.is_empty() || self.sync.is_some();
        !waits && self.jobs.is_empty() && self.opening.is_empty()
    }

    /// Where the walk ahead of the cursor had come to when that was noted last.
    #[must_use]
    pub const fn evacuation(&self) -> u64 {
        self.evacuation
    }

    /// Notes where that walk has come to; the header of the next sync that
    /// begins will say so.
    pub const fn note_evacuation(&mut self, position: u64) {
        self.evacuation = position;
    }

    /// Notes the invalidation epoch that later batches carry.
    pub const fn set_epoch(&mut self, epoch: u64) {
        self.identity.epoch = epoch;
    }

    /// The bytes of a fragment that is not on the device yet. `None`: it is by
    /// now, or its batch failed; read the device.
    #[must_use]
    pub fn buffered(&self, place: &Place) -> Option<Bytes> {
        let position = place.position;
        if let Some(filling) = self.filling.as_ref().filter(|f| f.start <= position) {
            return filling.read(place);
        }
        let holds = |batch: &&Sealed| batch.start <= position && position < batch.next.position;
        self.sealed.iter().find(holds)?.read(place)
    }

    fn header_content(&self) -> StripeContent {
        StripeContent {
            instance: self.identity.instance,
            suspect_below: self.directory.suspect_below(),
            run: self.identity.run,
            epoch: self.identity.epoch,
            ..self.header
        }
    }
}

fn log_shape(geometry: &Geometry) -> LogShape {
    LogShape {
        offset: geometry.log_offset(),
        bytes: geometry.log_bytes(),
    }
}

fn first_header(
    identity: &StripeIdentity,
    geometry: &Geometry,
    log: ChainPoint,
    ring: ChainPoint,
) -> StripeContent {
    StripeContent {
        uuid: identity.uuid,
        volume: identity.volume,
        instance: identity.instance,
        generation: 1,
        length: geometry.length(),
        block: geometry.block(),
        pages: geometry.pages(),
        good: None::<GoodCopy>,
        sync_sequence: 0,
        log,
        ring,
        evacuation: 0,
        suspect_below: 0,
        run: identity.run,
        is_opened: false,
        epoch: identity.epoch,
    }
}

#[cfg(test)]
mod tests;
