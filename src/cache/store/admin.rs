//! What operators ask: status, spans offline and online, taking devices over.

use super::Cache;
use super::begin::make;
use super::names::{self, Called, SpanName};
use super::open::{Shared, SpanEntry, cleared, live_spans, open_device};
use super::share;
use crate::base::planted::{Planted, is_planted};
use crate::cache::format::to_u64;
use crate::cache::inspect::{CacheStatus, RamStatus, Readiness, SpanState, SpanStatus};
use crate::cache::invalidation::{Presence, StateError};
use crate::cache::options::{CacheOptions, SpanOptions};
use crate::cache::span::{self, Intent, Judged, Span, SpanError};
use crate::cache::tier::SpanTier;
use crate::cache::volume::LiveSpan;
use crate::device::{Backend, OpenedDevice, choose};
use crate::metrics::Metric;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a span's state was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SpanCommandError {
    /// No span of storage.config is called so.
    #[error("{name}: not a span of storage.config; there is {known}")]
    Unknown {
        /// The name as it was given.
        name: String,
        /// The spans that there are.
        known: String,
    },
    /// Several spans are called so.
    #[error("{name}: more than one span is called so; name it by its path: {known}")]
    Ambiguous {
        /// The name as it was given.
        name: String,
        /// The spans that are called so.
        known: String,
    },
    /// It is in use: take it offline first.
    #[error("{p} is in use: traffic_ctl storage offline {p} comes first", p = path.display())]
    InUse {
        /// The path as configured.
        path: PathBuf,
    },
    /// It is what it is asked to become.
    #[error("{} is {state} already", path.display())]
    Unchanged {
        /// The path as configured.
        path: PathBuf,
        /// What it is.
        state: &'static str,
    },
    /// It can't be used; the text says why and what cures it.
    #[error("{0}")]
    Refused(String),
    /// The state directory can't be written.
    #[error("the span's state could not be written down: {0}")]
    State(String),
}

impl Cache {
    /// The state of the cache at this moment. Reads every directory: not for
    /// a request.
    #[must_use]
    pub fn status(&self) -> CacheStatus {
        let spans = self.span_rows();
        let spans: Vec<SpanStatus> = spans
            .into_iter()
            .map(|(options, state)| match state {
                Ok(live) => live.status(),
                Err(why) => refused(&options, &why),
            })
            .collect();
        self.set_entries(&spans);
        CacheStatus {
            readiness: self.readiness(),
            spans,
            ram: self.ram.status(),
            epoch: self.rules.epoch(),
            rules: self.rules.len(),
        }
    }

    /// The figures of the RAM cache.
    #[must_use]
    pub fn ram_status(&self) -> RamStatus {
        self.ram.status()
    }

    fn set_entries(&self, spans: &[SpanStatus]) {
        let online = spans.iter().filter(|span| span.state.is_in_use());
        let used = online.clone().map(|span| span.entries_used).sum();
        self.counters.set(Metric::CacheDirentriesUsed, used);
        let total = online.map(|span| span.entries_total).sum();
        self.counters.set(Metric::CacheDirentriesTotal, total);
    }

    /// Whether the cache can be used.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let mut stripes = self.volume.stripes();
        stripes.retain(|stripe| stripe.is_online());
        if stripes.iter().any(|stripe| !stripe.is_judged()) {
            return Readiness::Loading;
        }
        if stripes.is_empty() && !self.options.spans.is_empty() {
            return Readiness::NoSpan;
        }
        Readiness::Ready
    }

    /// The spans in use that are still being read.
    #[must_use]
    pub fn loading(&self) -> Vec<PathBuf> {
        let mut live = live_spans(&self.spans.lock());
        live.retain(|span| span.state() == SpanState::Loading);
        live.iter().map(|span| span.options.path.clone()).collect()
    }

    /// The path of the configured span that an operator means.
    ///
    /// # Errors
    /// `Unknown` and `Ambiguous`.
    pub fn span_named(&self, name: &SpanName) -> Result<PathBuf, SpanCommandError> {
        names::find(&called(&self.spans.lock()), name)
    }

    /// Whether event threads read the spans by rings of their own.
    #[must_use]
    pub fn is_read_by_rings(&self) -> bool {
        let backend = choose(self.options.aio_mode.wish()).backend;
        !self.options.spans.is_empty() && backend == Backend::Rings
    }

    /// Sets the gauges of the cache's metrics to what holds now, but for
    /// those that need a directory read: [`Cache::status`] sets them.
    pub fn publish(&self) {
        let ram = self.ram.status();
        let set = |metric, value| self.counters.set(metric, value);
        set(Metric::CacheRamCacheTotalBytes, ram.bytes_total);
        set(Metric::CacheRamCacheBytesUsed, ram.bytes_used);
        set(Metric::CacheRamCacheToWarm, self.warmer.left());
        let (mut online, mut offline, mut failing, mut suspect) = (0, 0, 0, 0);
        let (mut total, mut used) = (0, 0);
        for entry in &*self.spans.lock() {
            let Some(live) = entry.state.as_ref().ok().filter(|live| live.is_online()) else {
                offline += 1;
                continue;
            };
            online += 1;
            failing += u64::from(live.errors() > 0);
            suspect += u64::from(live.is_suspect());
            total += live.log_bytes();
            used += live.log_used();
        }
        set(Metric::CacheSpanOnline, online);
        set(Metric::CacheSpanOffline, offline);
        set(Metric::CacheSpanFailing, failing);
        set(Metric::CacheSpanSuspect, suspect);
        set(Metric::CacheBytesTotal, total);
        set(Metric::CacheBytesUsed, used);
        let stripes = self.volume.stripes();
        let unread = stripes.iter().map(|stripe| stripe.pages_unread()).sum();
        set(Metric::CachePagesUnread, unread);
        self.publish_volumes();
        let pinned = stripes.iter().map(|stripe| stripe.pinned_bytes()).sum();
        set(Metric::CachePinnedBytes, pinned);
        self.publish_wear();
    }

    fn publish_volumes(&self) {
        let mut volumes: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for stripe in self.volume.stripes() {
            let (total, used) = volumes.entry(stripe.volume).or_default();
            *total += stripe.log_bytes();
            *used += stripe.log_used();
        }
        self.counters.set_volumes(&volumes);
    }

    /// The gauges of what is written to the fast tier: of the span that has
    /// the least left.
    fn publish_wear(&self) {
        let tier = self.live.load().tier;
        let now = self.clock.mono();
        let mut fast = live_spans(&self.spans.lock());
        fast.retain(|span| span.tier == SpanTier::Fast && span.is_online());
        let left = fast.iter().filter_map(|span| span.budget().left(now));
        let left = left.min().unwrap_or(0);
        self.counters.set(Metric::TierFastBudgetLeft, left);
        let endurance = Some(tier.fast_endurance).filter(|bytes| *bytes > 0);
        let days = endurance.and_then(|bytes| {
            let spans = fast.iter();
            spans.filter_map(|span| span.life(now).days_to(bytes)).min()
        });
        self.counters
            .set(Metric::TierFastEnduranceDays, days.unwrap_or(0));
    }

    /// Writes down what was written to the spans of the fast tier so far.
    pub(super) fn remember_lives(&self) -> Result<(), StateError> {
        let live = live_spans(&self.spans.lock());
        let mut fast = live.iter().filter(|span| span.tier == SpanTier::Fast);
        fast.try_for_each(|span| self.remember_writes(span))
    }

    fn remember_writes(&self, span: &LiveSpan) -> Result<(), StateError> {
        let writes = span.writes(self.clock.mono(), self.clock.wall());
        self.state.set_writes(span.uuid, writes)
    }

    /// Takes a span out of use, written out first, and keeps it so over
    /// restarts. Its keys move to the other spans, and its device closes as soon
    /// as what it was asked for has ended.
    ///
    /// # Errors
    /// `Unknown`, `Unchanged`, and `State` when that can't be remembered: then
    /// it stays in use.
    pub async fn offline(&self, path: &Path) -> Result<(), SpanCommandError> {
        let live = self.span_at(path)?;
        if !live.is_online() {
            return Err(unchanged(path.to_owned(), "out of use"));
        }
        // First: what is purged while it closes may be written down no more.
        self.remember_presence(&live, Presence::Offline)?;
        for stripe in live.stripes() {
            stripe.close().await;
        }
        live.go_offline();
        live.retire();
        self.thread.place_anew().await;
        live.let_go();
        Ok(())
    }

    fn remember_presence(
        &self,
        span: &LiveSpan,
        presence: Presence,
    ) -> Result<(), SpanCommandError> {
        let remembered = self.state.set_presence(span.uuid, presence);
        remembered.map_err(|error| SpanCommandError::State(error.to_string()))
    }

    /// Takes a span into use that was offline or refused. What it holds is
    /// used after revalidation only: it may have missed something. Blocks
    /// while the device is opened, not while it is read: until then its state
    /// is `Loading`.
    ///
    /// # Errors
    /// `Unknown`, `Unchanged`, `Refused`, `State`.
    pub fn online(&self, path: &Path) -> Result<SpanState, SpanCommandError> {
        let note = |uuid| self.state.set_presence(uuid, Presence::Returning);
        let open = |options: &SpanOptions| open_device(options, &self.options);
        self.online_over(path, open, note)
    }

    /// [`Cache::online`] over the device that `open` gives, which `note` writes
    /// down.
    pub(super) fn online_over(
        &self,
        path: &Path,
        open: impl FnOnce(&SpanOptions) -> Result<OpenedDevice, SpanError>,
        note: impl FnOnce(u128) -> Result<(), StateError>,
    ) -> Result<SpanState, SpanCommandError> {
        // One at a time: each looks at what the others have made.
        let _command = self.span_command.lock();
        let options = self.not_in_use(path, |path| unchanged(path, "in use"))?;
        self.forget(path, "being opened");
        let opened = open(&options)
            .and_then(|device| span::judge(&device, &options, Intent::Use))
            .and_then(|judged| self.join(judged));
        let span = opened.map_err(|error| {
            self.forget(path, &error.to_string());
            SpanCommandError::Refused(error.to_string())
        })?;
        note(span.content.uuid).map_err(|error| {
            self.forget(path, &error.to_string());
            SpanCommandError::State(error.to_string())
        })?;
        let shared = Shared {
            options: &self.options,
            live: **self.live.load(),
            state: &self.state,
            epoch: self.rules.epoch(),
            clock: &self.clock,
            counters: &self.counters,
        };
        let mut made = make(&shared, &span, &options, true);
        self.meet(&mut made);
        let live = made.begin();
        for entry in &mut *self.spans.lock() {
            if entry.options.path == path {
                entry.state = Ok(Arc::clone(&live));
            }
        }
        self.thread.place_anew_and_wait();
        Ok(live.state())
    }

    /// Takes a span into the volumes, which leave the others as they are.
    pub(super) fn join(&self, judged: Judged) -> Result<Span, SpanError> {
        let others = live_spans(&self.spans.lock());
        let twin = others.iter().find(|span| span.uuid == judged.uuid());
        let judged = judged.unless_twin(twin.map(|span| span.options.path.as_path()))?;
        let rooms = others.iter().map(|span| span.room()).collect();
        let span = share::join(judged, rooms, &self.options, &self.state)?;
        self.rules.add_clears(&cleared(&self.state));
        Ok(span)
    }

    /// Makes an empty span of a configured path that is not in use; with
    /// `force`, whatever it holds. Blocks while the device is written.
    ///
    /// # Errors
    /// `Unknown`, `InUse`, and `Refused` with what is there.
    pub fn init(&self, path: &Path, force: bool) -> Result<(), SpanCommandError> {
        let _command = self.span_command.lock();
        let options = self.not_in_use(path, |path| SpanCommandError::InUse { path })?;
        self.forget(path, "being made anew");
        match make_empty(&options, &self.options, force) {
            Ok(()) => self.forget(path, "empty; traffic_ctl storage online takes it into use"),
            Err(error) => {
                self.forget(path, &error.to_string());
                return Err(SpanCommandError::Refused(error.to_string()));
            }
        }
        Ok(())
    }

    /// Counts what devices have not answered for too long.
    pub(super) fn judge_silence(&self) {
        let (now, limit) = (self.clock.mono(), self.live.load().io_timeout);
        for span in live_spans(&self.spans.lock()) {
            let silent = to_u64(span.judge_silence(now, limit));
            self.counters.add(Metric::CacheSpanErrorsWrite, silent);
        }
    }

    /// Moves the keys of spans that went offline by themselves, and remembers
    /// that they did.
    pub(super) fn retire_spans(&self) {
        self.remember_ends();
        let in_use = self.volume.stripes();
        if in_use.iter().any(|stripe| !stripe.is_placed()) {
            self.place_anew();
        }
    }

    /// Remembers which spans went offline by themselves. Until the next start will
    /// know it, nobody takes a span's place, and the next look tries again.
    pub(super) fn remember_ends(&self) {
        let live = live_spans(&self.spans.lock());
        let ended = live.iter().filter(|span| span.has_ended());
        ended.for_each(|span| self.remember_end(span));
    }

    fn remember_end(&self, span: &LiveSpan) {
        let remembered = match is_planted(Planted::OfflineForgotten) {
            true => Ok(()),
            false => self.state.set_presence(span.uuid, Presence::Offline),
        };
        match remembered {
            Ok(()) => span.retire(),
            Err(error) => tracing::error!(%error, "an offline span could not be remembered"),
        }
    }

    /// Forgets of spans that returned that they did, once they say it themselves.
    pub(super) fn note_returned(&self) {
        for span in live_spans(&self.spans.lock()) {
            if span.has_returned()
                && let Err(error) = self.state.set_presence(span.uuid, Presence::Here)
            {
                tracing::error!(%error, "a span that returned stays suspect at the next start");
            }
        }
    }

    /// The spans, copied out: what reads their directories holds no lock that
    /// the cache's thread wants.
    fn span_rows(&self) -> Vec<(SpanOptions, Result<Arc<LiveSpan>, String>)> {
        let entries = self.spans.lock();
        let rows = entries.iter();
        rows.map(|entry| (entry.options.clone(), entry.state.clone()))
            .collect()
    }

    pub(super) fn span_at(&self, path: &Path) -> Result<Arc<LiveSpan>, SpanCommandError> {
        let spans = self.spans.lock();
        let found = spans.iter().find(|entry| entry.options.path == path);
        let path = path.to_owned();
        match found.map(|entry| &entry.state) {
            Some(Ok(live)) => Ok(Arc::clone(live)),
            Some(Err(_)) => Err(unchanged(path, "out of use")),
            None => Err(names::unknown(&called(&spans), &path)),
        }
    }

    /// The configuration of a span that is offline or refused.
    fn not_in_use(
        &self,
        path: &Path,
        error: fn(PathBuf) -> SpanCommandError,
    ) -> Result<SpanOptions, SpanCommandError> {
        let spans = self.spans.lock();
        let found = spans.iter().find(|entry| entry.options.path == path);
        let entry = found.ok_or_else(|| names::unknown(&called(&spans), path))?;
        match &entry.state {
            Ok(live) if live.is_online() => Err(error(path.to_owned())),
            Ok(_) | Err(_) => Ok(entry.options.clone()),
        }
    }

    /// Lets go of a span that is not in use, so that its device closes. What
    /// RAM has of it goes too: its place would keep the old directory.
    fn forget(&self, path: &Path, why: &str) {
        let mut closed = None;
        for entry in &mut *self.spans.lock() {
            if entry.options.path == path {
                entry.let_go();
                let before = std::mem::replace(&mut entry.state, Err(why.to_owned()));
                closed = before.ok();
            }
        }
        if let Some(span) = closed {
            if span.has_ended() {
                self.remember_end(&span);
            }
            if let Err(error) = self.remember_writes(&span) {
                tracing::error!(%error, "what was written to a span could not be remembered");
            }
            self.ram.retain(|stored| !stored.is_on(span.uuid));
            span.close();
        }
    }
}

const fn unchanged(path: PathBuf, state: &'static str) -> SpanCommandError {
    SpanCommandError::Unchanged { path, state }
}

fn called(spans: &[SpanEntry]) -> Vec<Called> {
    let spans = spans.iter();
    spans
        .map(|entry| {
            let uuid = entry.state.as_ref().ok().map(|live| live.uuid);
            Called::new(&entry.options, uuid)
        })
        .collect()
}

/// Makes an empty span of one of `options` as [`Cache::init`] does, while no
/// cache is open: the caller holds the lock of the state directory. The name
/// is a path or an `id=`, for no span is read.
///
/// # Errors
/// `Unknown`, `Ambiguous`, and `Refused` with what is there.
pub fn init_span(
    options: &CacheOptions,
    name: &SpanName,
    force: bool,
) -> Result<(), SpanCommandError> {
    let spans = options.spans.iter();
    let called: Vec<Called> = spans.map(|span| Called::new(span, None)).collect();
    let path = names::find(&called, name)?;
    let found = options.spans.iter().find(|span| span.path == path);
    let span = found.ok_or_else(|| names::unknown(&called, &path))?;
    make_empty(span, options, force).map_err(|error| SpanCommandError::Refused(error.to_string()))
}

fn make_empty(span: &SpanOptions, options: &CacheOptions, force: bool) -> Result<(), SpanError> {
    let intent = if force {
        Intent::InitForce
    } else {
        Intent::Init
    };
    let device = open_device(span, options)?;
    span::open(&device, span, intent).map(drop)
}

fn refused(options: &SpanOptions, why: &str) -> SpanStatus {
    SpanStatus {
        path: options.path.clone(),
        id: options.id.clone(),
        uuid: None,
        tier: options.tier,
        state: SpanState::Refused(why.to_owned()),
        bytes_total: 0,
        bytes_used: 0,
        entries_total: 0,
        entries_used: 0,
        pages_unread: 0,
        errors: 0,
        checksum_errors: 0,
        stripes: Vec::new(),
    }
}
