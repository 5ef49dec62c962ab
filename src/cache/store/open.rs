//! Opening: from configured spans to stripes in use.

use super::begin::{Made, lose_runs, make};
use super::counters::Counters;
use super::deferred::DeferredHeads;
use super::layout;
use super::mover::Mover;
use super::share::{self, Shares};
use super::slots::Slots;
use super::thread::{self, CacheThread};
use super::warm::Warmer;
use super::{Cache, State};
use crate::base::clock::Clock;
use crate::base::memory;
use crate::base::size::MIB;
use crate::cache::format::span_header::StripeSlot;
use crate::cache::inspect::{SpanOutcome, SpanReport};
use crate::cache::invalidation::{Clears, Rules};
use crate::cache::options::{AioMode, CacheOptions, LiveOptions, SpanOptions};
use crate::cache::ram::RamCache;
use crate::cache::span::{self, Intent, Span, SpanError};
use crate::cache::stripe::{StripeIdentity, StripeOptions};
use crate::cache::volume::{LiveSpan, StripeSeed, Volume};
use crate::device::{Backend, Choice, OpenRequest, OpenedDevice, choose};
use crate::metrics::Registry;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

/// The RAM cache's size when nobody sets it and there is no directory to
/// derive it from, in bytes.
const RAM_ALONE: u64 = 256 * MIB;
/// The RAM cache's automatic size, in bytes a byte of directory.
const RAM_BY_DIRECTORY: u64 = 10;
/// The least that the automatic size comes to, in bytes.
const RAM_LEAST: u64 = 32 * MIB;
/// Bytes of a directory slot.
const SLOT_BYTES: u64 = 8;
/// The largest fragment: two and their heads fit the aggregation buffer.
const FRAGMENT_MAX: u32 = 1_792 << 10;
/// Bytes of the aggregation buffer, which wait beside the backlog.
const BUFFER_BYTES: u64 = 4 * MIB;

/// A configured span.
#[derive(Debug)]
pub(super) struct SpanEntry {
    pub(super) options: SpanOptions,
    /// The span in use, or why it is left out.
    pub(super) state: Result<Arc<LiveSpan>, String>,
}

impl SpanEntry {
    /// Parts the span from its stripes, so that the device closes as soon as
    /// nobody reads it any more.
    pub(super) fn let_go(&self) {
        if let Ok(live) = &self.state {
            live.set_stripes(Vec::new());
        }
    }
}

/// What stripes need beside their span.
pub(super) struct Shared<'a> {
    pub(super) options: &'a CacheOptions,
    pub(super) live: LiveOptions,
    pub(super) state: &'a State,
    /// The epoch of now.
    pub(super) epoch: u64,
    pub(super) clock: &'a Arc<dyn Clock>,
    pub(super) counters: &'a Arc<Counters>,
}

/// See [`Cache::open`].
pub(super) fn open(
    mut options: CacheOptions,
    clock: Arc<dyn Clock>,
    registry: &Registry,
) -> (Arc<Cache>, Vec<SpanReport>) {
    options.target_fragment_size = options.target_fragment_size.clamp(4096, FRAGMENT_MAX);
    if !options.spans.is_empty() {
        log_backend(options.aio_mode);
    }
    let devices = options.spans.iter().map(|span| open_device(span, &options));
    let devices = devices.collect();
    open_over(options, devices, clock, registry)
}

/// Says how the spans are read, and why; loudly if that is not as asked for.
fn log_backend(mode: AioMode) {
    let Choice { backend, why } = choose(mode.wish());
    let granted = match mode {
        AioMode::Auto | AioMode::Thread => true,
        AioMode::IoUring => backend == Backend::Rings,
        AioMode::Native => false,
    };
    if granted {
        tracing::info!(?mode, ?backend, why, "disk I/O (proxy.config.aio.mode)");
    } else {
        tracing::warn!(
            ?mode,
            ?backend,
            why,
            "disk I/O is not by proxy.config.aio.mode"
        );
    }
}

/// Opens the cache over devices that are open already, one for each span of
/// `options`.
pub(super) fn open_over(
    options: CacheOptions,
    devices: Vec<Result<OpenedDevice, SpanError>>,
    clock: Arc<dyn Clock>,
    registry: &Registry,
) -> (Arc<Cache>, Vec<SpanReport>) {
    let state = thread::open_state(options.state_dir.as_deref(), clock.wall().as_secs());
    let unfinished = state.unfinished_purges();
    let counters = Arc::new(Counters::new(registry, &share::numbers(&options)));
    let shared = Shared {
        options: &options,
        live: options.live(),
        state: &state,
        epoch: state.epoch,
        clock: &clock,
        counters: &counters,
    };
    let (entries, reports) = open_spans(&shared, devices);
    let mut clears = cleared(&state);
    let unfinished = unfinished.unwrap_or_else(|error| {
        tracing::error!(%error, "what was purged is not known any more: all is cleared");
        clears.add(None, state.epoch);
        Vec::new()
    });
    let live = live_spans(&entries);
    let hosting = Arc::new(options.hosting.clone());
    let unsettled = layout::take_part(&state, &live, &hosting);
    let volume = Volume::over(&live, &hosting);
    note_present(&state, &volume);
    let numbers = volume.stripes().into_iter().map(|stripe| stripe.volume);
    share::say_without_room(&options.volumes, numbers);
    unsettled.iter().for_each(|stripe| stripe.date_change());
    let live_options = options.live();
    let ram_automatic = automatic_ram(&options, &volume);
    let ram_size = live_options.ram_size.unwrap_or(ram_automatic);
    let cache = Arc::new_cyclic(|me| Cache {
        me: me.clone(),
        ram: RamCache::new(ram_size, &options.ram),
        rules: Rules::new((state.epoch, state.retired), &unfinished, clears),
        slots: Slots::new(),
        thread: CacheThread::start(me.clone(), state.clone(), &unfinished),
        deferred: DeferredHeads::default(),
        mover: Mover::start(me.clone()),
        warmer: Warmer::over(warm_dir(&options)),
        spans: Mutex::new(entries),
        span_command: Mutex::default(),
        counters,
        volume,
        hosting: ArcSwap::new(hosting),
        clock,
        state,
        ram_automatic,
        live: ArcSwap::from_pointee(live_options),
        options,
    });
    cache.warmer.begin(Arc::downgrade(&cache));
    cache.publish();
    (cache, reports)
}

/// Writes down which stripes are there, before anything is done that they could
/// miss.
fn note_present(state: &State, volume: &Volume) {
    let stripes = volume.stripes();
    let noted = state.note_present(stripes.iter().map(|stripe| stripe.uuid));
    if let Err(error) = noted {
        tracing::error!(%error, "which stripes are there could not be written down");
    }
}

/// Where it is written down what is hot: nowhere without spans to read it from.
fn warm_dir(options: &CacheOptions) -> Option<&Path> {
    let dir = options.state_dir.as_deref();
    dir.filter(|_| !options.spans.is_empty())
}

/// What was cleared; everything, if that can't be read any more.
pub(super) fn cleared(state: &State) -> Clears {
    state.clears().unwrap_or_else(|error| {
        tracing::error!(%error, "what was cleared is not known any more: all is cleared");
        Clears {
            all: state.epoch,
            ..Clears::default()
        }
    })
}

/// The spans among `entries` that are open.
pub(super) fn live_spans(entries: &[SpanEntry]) -> Vec<Arc<LiveSpan>> {
    let live = entries.iter().filter_map(|entry| entry.state.as_ref().ok());
    live.cloned().collect()
}

/// Opens the device of a span.
pub(super) fn open_device(
    span: &SpanOptions,
    options: &CacheOptions,
) -> Result<OpenedDevice, SpanError> {
    let request = OpenRequest {
        path: span.path.clone(),
        size: span.size,
        backend: choose(options.aio_mode.wish()).backend,
        threads: options.threads_per_disk,
        read_depth: options.disk_read_depth,
        read_queue: options.disk_read_queue,
        force_sector: options.force_sector_size,
        patience: options.patience(),
    };
    Ok(crate::device::open(&request)?)
}

fn open_spans(
    shared: &Shared<'_>,
    devices: Vec<Result<OpenedDevice, SpanError>>,
) -> (Vec<SpanEntry>, Vec<SpanReport>) {
    let intent = if shared.options.clear {
        Intent::Clear
    } else {
        Intent::Use
    };
    let spans = shared.options.spans.iter().zip(devices);
    let judged = spans.map(|(options, device)| span::judge(&device?, options, intent));
    let taken = Shares::of(judged.collect(), shared.options).take(shared.state);
    let spans = shared.options.spans.iter().zip(taken);
    let made = spans.map(|(options, taken)| {
        let made = taken.map(|span| {
            let made = make(shared, &span, options, false);
            (made, span.formatted)
        });
        (options, made)
    });
    let mut made: Vec<_> = made.collect();
    meet(
        shared,
        made.iter_mut().filter_map(|(_, made)| made.as_mut().ok()),
    );
    let made = made.into_iter();
    made.map(|(options, made)| {
        let state = made.map(|(made, formatted)| (made.begin(), formatted));
        entry(options, state)
    })
    .unzip()
}

/// Asks all spans of a start before any of them is used.
fn meet<'a>(shared: &Shared<'_>, spans: impl Iterator<Item = &'a mut (Made, bool)>) {
    let mut spans: Vec<&mut Made> = spans.map(|(made, _)| made).collect();
    let lost = spans.iter_mut().flat_map(|made| made.meet(shared.state));
    let lost = lost.collect();
    if let Err(error) = lose_runs(shared.state, &lost, shared.epoch) {
        tracing::error!(%error, "what is dead could not be written down: all is taken for dead");
        spans.iter_mut().for_each(|made| made.distrust());
    }
}

/// A span's entry and its report.
fn entry(
    options: &SpanOptions,
    state: Result<(Arc<LiveSpan>, bool), SpanError>,
) -> (SpanEntry, SpanReport) {
    let path = options.path.clone();
    let (state, outcome) = match state {
        Ok((live, formatted)) => {
            let outcome = SpanOutcome::Used {
                tier: live.tier,
                bytes: live.bytes,
                formatted,
            };
            (Ok(live), outcome)
        }
        Err(error) => {
            let text = error.to_string();
            (Err(text.clone()), SpanOutcome::Refused(text))
        }
    };
    let options = options.clone();
    (SpanEntry { options, state }, SpanReport { path, outcome })
}

/// What a stripe in `slot` of `span` is started from.
pub(super) fn seed(
    shared: &Shared<'_>,
    span: &Span,
    slot: &StripeSlot,
    last_run: u64,
) -> StripeSeed {
    let options = shared.options;
    StripeSeed {
        slot: *slot,
        block: span.content.block,
        average_object_bytes: options.average_object_bytes(span.tier(), span.content.size),
        identity: StripeIdentity {
            uuid: slot.uuid,
            volume: slot.volume,
            instance: shared.state.instance,
            run: shared.state.run,
            epoch: shared.epoch,
        },
        known_instance: None,
        last_run,
        options: StripeOptions {
            fragment_bytes: options.target_fragment_size,
            backlog_bytes: backlog(&shared.live),
            sync_interval: shared.live.dir_sync_frequency,
            ..StripeOptions::default()
        },
    }
}

/// Bytes that may wait in a stripe, those in its buffer included.
const fn backlog(live: &LiveOptions) -> u64 {
    live.agg_write_backlog.saturating_add(BUFFER_BYTES)
}

impl Cache {
    /// Options for what happens from now on. What the RAM cache no longer may
    /// hold leaves at once; a span with too many errors goes at its next one.
    pub fn configure(&self, live: LiveOptions) {
        self.live.store(Arc::new(live));
        self.ram
            .set_size(live.ram_size.unwrap_or(self.ram_automatic));
        self.ram.set_cutoff(live.ram_cutoff);
        for span in live_spans(&self.spans.lock()) {
            span.configure(&live, self.clock.mono());
            for stripe in span.stripes() {
                stripe.configure(backlog(&live), live.dir_sync_frequency);
            }
        }
        self.publish();
    }
}

fn automatic_ram(options: &CacheOptions, volume: &Volume) -> u64 {
    let stripes = volume.stripes();
    let slots = stripes.iter().map(|stripe| {
        let average = options.average_object_bytes(stripe.span_tier(), stripe.span_bytes());
        stripe.candidate().bytes / average.max(512)
    });
    sized_ram(slots.sum::<u64>() * SLOT_BYTES, memory::bytes())
}

/// Bytes of the RAM cache beside so many of directories: ten times as many, and
/// no more than half of the memory that they leave.
fn sized_ram(directories: u64, memory: Option<u64>) -> u64 {
    let wanted = match directories.saturating_mul(RAM_BY_DIRECTORY) {
        0 => RAM_ALONE,
        size => size.max(RAM_LEAST),
    };
    let most = memory.map_or(u64::MAX, |memory| memory.saturating_sub(directories) / 2);
    if most < wanted {
        tracing::info!(
            wanted,
            most,
            directories,
            "the RAM cache is held to half of the \
            memory that the directories leave; proxy.config.cache.ram_cache.size sets it"
        );
    }
    wanted.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ram_follows_the_storage_up_to_half_of_what_the_directories_leave() {
        const GIB: u64 = 1 << 30;
        for (directories, memory, size) in [
            (0, Some(64 * GIB), RAM_ALONE),
            (0, Some(MIB), MIB / 2),
            (1000, None, RAM_LEAST),
            (GIB, None, 10 * GIB),
            (GIB, Some(64 * GIB), 10 * GIB),
            (GIB, Some(9 * GIB), 4 * GIB),
            (32 * GIB, Some(64 * GIB), 16 * GIB),
            (32 * GIB, Some(16 * GIB), 0),
        ] {
            assert_eq!(sized_ram(directories, memory), size, "{directories}");
        }
    }
}
