//! One stripe on a disk in memory.

use super::*;
use crate::base::clock::{Clock, ManualClock};
use crate::cache::format::fragment::FragmentKind;
use crate::cache::options::{CacheOptions, SpanOptions};
use crate::cache::span::{self, Intent, Span};
use crate::cache::store::Counters;
use crate::cache::stripe::{NewFragment, StripeIdentity, StripeOptions};
use crate::cache::tier::WriteCause;
use crate::device::{DeviceKind, MemDisk, OpenedDevice};
use crate::metrics::Registry;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::io;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

/// A span of one stripe, and what that is begun from.
struct Bench {
    live: Arc<LiveSpan>,
    stripe: Arc<LiveStripe>,
    seed: StripeSeed,
}

impl Bench {
    fn over(disk: &Arc<MemDisk>) -> Self {
        let options = SpanOptions::at("/dev/mem0");
        let opened = OpenedDevice {
            device: Arc::new(disk.device()),
            kind: DeviceKind::Block,
            path: options.path.clone(),
            rotational: None,
        };
        let span = span::open(&opened, &options, Intent::Use).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let limits = CacheOptions::default().live();
        let live = Arc::new(LiveSpan::new(&span, &options, &limits, clock.mono()));
        let counters = Arc::new(Counters::new(&Registry::new(), &BTreeSet::new()));
        let slot = &span.content.stripes[0];
        let stripe = LiveStripe::new(&live, slot, &clock, &counters);
        live.set_stripes(vec![Arc::clone(&stripe)]);
        let seed = seed(&span);
        Self { live, stripe, seed }
    }

    fn append(&self, key_hash: u128) {
        let new = NewFragment {
            key_hash,
            kind: FragmentKind::Head,
            meta: b"head",
            body: &[Bytes::from_static(b"body")],
            keep: &[],
            copy_of: None,
            pinned: false,
        };
        self.stripe.append(&new, WriteCause::Fill).unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.live.set_stripes(Vec::new());
    }
}

fn seed(span: &Span) -> StripeSeed {
    let slot = span.content.stripes[0];
    StripeSeed {
        slot,
        block: span.content.block,
        average_object_bytes: 8000,
        identity: StripeIdentity {
            uuid: slot.uuid,
            volume: slot.volume,
            instance: 5,
            run: 1,
            epoch: 0,
        },
        known_instance: Some(5),
        last_run: 0,
        options: StripeOptions::default(),
    }
}

/// Whether a future ends without a wait.
fn ends_at_once(future: impl Future<Output = ()>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut context).is_ready()
}

#[test]
fn who_waits_for_a_flush_does_not_wait_for_what_is_wanted_after_it() {
    let bench = Bench::over(&MemDisk::blank(40 << 20));
    bench.stripe.begin(bench.seed, true);
    bench.append(1);
    assert!(ends_at_once(bench.stripe.flush()));
    let written = bench.stripe.unflushed().unwrap();
    bench.append(2);
    let filling = bench.stripe.unflushed().unwrap();
    assert!(filling.sequence > written.sequence);
    filling.want_safe();
    assert!(ends_at_once(bench.stripe.secure(written.sequence)));
    assert!(written.is_safe() && !filling.is_safe());
}

#[test]
fn who_waits_for_a_span_that_is_out_of_use_is_woken_where_silence_has_no_limit_too() {
    let bench = Bench::over(&MemDisk::blank(40 << 20));
    let mut waiting = pin!(bench.stripe.judged());
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    bench.live.go_offline();
    let now = ManualClock::default().mono();
    assert_eq!(bench.live.judge_silence(now, Duration::ZERO), 0);
    assert!(waiting.as_mut().poll(&mut context).is_ready());
}

#[test]
fn a_stripe_is_read_at_once_where_no_thread_can_be_had_for_it() {
    let disk = MemDisk::blank(40 << 20);
    let bench = Bench::over(&disk);
    bench.stripe.begin(bench.seed, true);
    bench.append(1);
    assert!(ends_at_once(bench.stripe.close()));
    let again = Bench::over(&disk);
    let none = |_| Err(io::ErrorKind::WouldBlock.into());
    again.stripe.recover_behind(again.seed, none);
    assert!(again.live.is_online() && again.stripe.is_loaded());
}
