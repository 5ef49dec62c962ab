//! What passes over a connection, frame by frame: the counts by which one that
//! abuses the protocol is told from one that uses it.
//!
//! The library has limits of its own and knows the meaning of each frame; what
//! it does not count is what a frame costs that is perfectly in order.

use super::frames::{Frame, Scanner, kind};
use crate::metrics::{Cells, Metric};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// WINDOW_UPDATEs that their average is taken of.
const UPDATES: usize = 5;

/// Frames of a kind that no flood is made of: the library bears more.
const FEW: u64 = 5;

/// Bytes of one setting.
const SETTING: usize = 6;

/// The error code that says so (RFC 9113 7).
const ENHANCE_YOUR_CALM: u32 = 11;
const REFUSED_STREAM: u32 = 7;
const NO_ERROR: u32 = 0;
const CANCEL: u32 = 8;
const INTERNAL_ERROR: u32 = 2;
const CONNECT_ERROR: u32 = 10;

/// What counts are of.
const MINUTE: Duration = Duration::from_secs(60);

macro_rules! abuses {
    ($( $(#[doc = $help:literal])+ $variant:ident, $limit:ident, $metric:ident; )+) => {
        /// What a client did too much of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Abuse {
            $( $(#[doc = $help])+ $variant, )+
            /// WINDOW_UPDATEs that add next to nothing.
            WindowUpdate,
        }

        /// How many a minute a connection may send; none is no limit.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct FrameLimits {
            $( $(#[doc = $help])+ pub $limit: Option<u64>, )+
            /// What five WINDOW_UPDATEs in a row must add on average, in bytes.
            pub window_update: f64,
        }

        impl Abuse {
            /// The counter of connections closed for it.
            const fn metric(self) -> Metric {
                match self {
                    $( Self::$variant => Metric::$metric, )+
                    Self::WindowUpdate => Metric::Http2InsufficientWindowUpdate,
                }
            }
        }

        #[derive(Debug, Default)]
        struct Rates {
            $( $limit: Rate, )+
        }

        impl Rates {
            /// Counts `many`; whether that is too many.
            fn exceed(&mut self, limits: &FrameLimits, abuse: Abuse, many: u64) -> bool {
                match abuse {
                    $( Abuse::$variant => self.$limit.exceeds(limits.$limit, many), )+
                    Abuse::WindowUpdate => false,
                }
            }

            /// What there was most of in this minute, and how much.
            fn most(&self) -> (Abuse, u64) {
                let all = [$( (Abuse::$variant, self.$limit.now()), )+];
                let most = all.into_iter().max_by_key(|(_, count)| *count);
                most.unwrap_or((Abuse::WindowUpdate, 0))
            }
        }
    };
}

abuses! {
    /// SETTINGS frames (`max_settings_frames_per_minute`).
    SettingsFrames, settings_frames, Http2SettingsFramesExceeded;
    /// Settings in them (`max_settings_per_minute`).
    Settings, settings, Http2SettingsExceeded;
    /// PING frames (`max_ping_frames_per_minute`).
    Ping, ping, Http2PingExceeded;
    /// PRIORITY frames (`max_priority_frames_per_minute`).
    Priority, priority, Http2PriorityExceeded;
    /// RST_STREAM frames (`max_rst_stream_frames_per_minute`).
    RstStream, rst_stream, Http2RstStreamExceeded;
    /// RST_STREAM frames of ours, for what the client did wrong; counted by the
    /// same record.
    Provoked, provoked, Http2SessionsHighErrorRate;
    /// CONTINUATION frames (`max_continuation_frames_per_minute`).
    Continuation, continuation, Http2ContinuationExceeded;
    /// DATA frames that hold nothing and end nothing
    /// (`max_empty_frames_per_minute`).
    Empty, empty, Http2EmptyExceeded;
}

/// A count that begins anew each minute.
#[derive(Debug, Default)]
struct Rate {
    begun: Option<Instant>,
    count: u64,
}

impl Rate {
    fn exceeds(&mut self, limit: Option<u64>, many: u64) -> bool {
        if !self.is_current() {
            self.begun = Some(Instant::now());
            self.count = 0;
        }
        self.count = self.count.saturating_add(many);
        limit.is_some_and(|limit| self.count > limit)
    }

    fn is_current(&self) -> bool {
        let begun = self.begun;
        begun.is_some_and(|begun| begun.elapsed() < MINUTE)
    }

    /// The count of this minute.
    fn now(&self) -> u64 {
        if self.is_current() { self.count } else { 0 }
    }
}

/// What came in so far.
#[derive(Debug)]
struct Inbound {
    scanner: Scanner,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    rates: Rates,
    /// What the last WINDOW_UPDATEs added.
    updates: [u32; UPDATES],
    updated: usize,
    head: Head,
}

/// How far the last head has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Head {
    /// The last frame was another one.
    #[default]
    None,
    /// Its last frame is the one under way.
    Last,
    /// More of its frames follow.
    Open,
}

impl Tally {
    /// Counts a frame; what there is too much of now.
    fn count(&mut self, frame: Frame, limits: &FrameLimits) -> Option<Abuse> {
        self.head = match frame.is_of_head() {
            true if frame.leaves_head_open() => Head::Open,
            true => Head::Last,
            false => Head::None,
        };
        if frame.kind == kind::WINDOW_UPDATE {
            let average = self.average_with(frame.word())?;
            return (average < limits.window_update).then_some(Abuse::WindowUpdate);
        }
        let mut costs = costs(frame).into_iter().flatten();
        let over = costs.find(|(abuse, many)| self.rates.exceed(limits, *abuse, *many))?;
        Some(over.0)
    }

    /// The average of the last updates, once there are enough.
    fn average_with(&mut self, latest: u32) -> Option<f64> {
        if let Some(oldest) = self.updates.get_mut(self.updated % UPDATES) {
            *oldest = latest;
        }
        self.updated += 1;
        let sum: f64 = self.updates.iter().copied().map(f64::from).sum();
        (self.updated >= UPDATES).then_some(sum / 5.0)
    }
}

/// The eye on one connection, shared by what reads and writes its socket and by
/// what serves it.
#[derive(Debug)]
pub(super) struct Watch {
    limits: FrameLimits,
    cells: Arc<Cells>,
    inbound: RefCell<Inbound>,
    outbound: RefCell<Scanner>,
    /// When something was asked or answered last.
    moved: Cell<Instant>,
    /// When the head began that has not come to its end.
    head_since: Cell<Option<Instant>>,
    abuse: Cell<Option<Abuse>>,
}

impl Watch {
    /// Frames come in after a preface of so many bytes.
    pub(super) fn new(limits: FrameLimits, cells: &Arc<Cells>, preface: usize) -> Self {
        Self {
            limits,
            cells: Arc::clone(cells),
            inbound: RefCell::new(Inbound {
                scanner: Scanner::after(preface),
                tally: Tally::default(),
            }),
            outbound: RefCell::new(Scanner::after(0)),
            moved: Cell::new(Instant::now()),
            head_since: Cell::new(None),
            abuse: Cell::new(None),
        }
    }

    /// Looks at bytes that came in.
    pub(super) fn read(&self, bytes: &[u8]) {
        let Inbound { scanner, tally } = &mut *self.inbound.borrow_mut();
        scanner.scan(bytes, |frame| {
            self.saw(frame);
            if let Some(abuse) = tally.count(frame, &self.limits) {
                self.accuse(abuse);
            }
        });
        let is_open = match tally.head {
            Head::None => false,
            Head::Last => scanner.is_within(),
            Head::Open => true,
        };
        let since = self.head_since.get().unwrap_or_else(Instant::now);
        self.head_since.set(is_open.then_some(since));
    }

    /// Frames that ask or answer; any other keeps no connection.
    fn saw(&self, frame: Frame) {
        if frame.kind == kind::DATA || frame.is_of_head() {
            self.touch();
        }
    }

    /// Begins to count anew how long nothing is asked.
    pub(super) fn touch(&self) {
        self.moved.set(Instant::now());
    }

    /// Looks at bytes that went out.
    pub(super) fn wrote(&self, bytes: &[u8]) {
        let mut scanner = self.outbound.borrow_mut();
        scanner.scan(bytes, |frame| {
            self.saw(frame);
            self.sent(frame);
        });
    }

    fn sent(&self, frame: Frame) {
        match (frame.kind, frame.word(), frame.second_word()) {
            (kind::RST_STREAM, NO_ERROR | CANCEL, _) | (kind::GOAWAY, _, NO_ERROR) => {}
            (kind::RST_STREAM, INTERNAL_ERROR | CONNECT_ERROR, _) => {
                self.cells.add(Metric::Http2StreamErrors, 1);
            }
            (kind::RST_STREAM, REFUSED_STREAM, _) => {
                self.cells.add(Metric::Http2StreamsRefused, 1);
                self.provoked();
            }
            (kind::RST_STREAM, ..) => {
                self.cells.add(Metric::Http2StreamErrors, 1);
                self.provoked();
            }
            (kind::GOAWAY, _, code) => {
                self.cells.add(Metric::Http2ConnectionErrors, 1);
                if code == ENHANCE_YOUR_CALM {
                    self.blame();
                }
            }
            _ => {}
        }
    }

    /// Counts a stream that we reset for what the client did: one that it need
    /// not reset itself costs us as much (CVE-2025-8671).
    fn provoked(&self) {
        let rates = &mut self.inbound.borrow_mut().tally.rates;
        if rates.exceed(&self.limits, Abuse::Provoked, 1) {
            self.accuse(Abuse::Provoked);
        }
    }

    /// The library has had enough: of what there was most of, or else of fields.
    fn blame(&self) {
        if self.abuse.get().is_some() {
            return;
        }
        match self.inbound.borrow().tally.rates.most() {
            (abuse, FEW..) => self.accuse(abuse),
            _ => self.cells.add(Metric::Http2HeaderListExceeded, 1),
        }
    }

    fn accuse(&self, abuse: Abuse) {
        if self.abuse.replace(Some(abuse)).is_none() {
            self.cells.add(abuse.metric(), 1);
        }
    }

    /// What the client did too much of.
    pub(super) fn abuse(&self) -> Option<Abuse> {
        self.abuse.get()
    }

    /// Waits for abuse. To be polled after what reads the connection, in one
    /// task with it.
    pub(super) async fn abused(&self) -> Abuse {
        poll_fn(|_| self.abuse().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Waits until a head has not come to its end for `limit`. To be polled
    /// after what reads the connection, in one task with it.
    pub(super) async fn unended(&self, limit: Duration) {
        let mut timer = pin!(sleep_until(Instant::now()));
        let wait = poll_fn(|cx| {
            let Some(since) = self.head_since.get() else {
                return Poll::Pending;
            };
            if timer.deadline() != since + limit {
                timer.as_mut().reset(since + limit);
            }
            timer.as_mut().poll(cx)
        });
        wait.await;
    }

    /// Waits until nothing was asked or answered for `limit`.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            let until = self.moved.get() + limit;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// What a frame counts as, at most two things.
fn costs(frame: Frame) -> [Option<(Abuse, u64)>; 2] {
    let settings = u64::try_from(frame.length / SETTING).unwrap_or(u64::MAX);
    let one = |abuse| [Some((abuse, 1)), None];
    match frame.kind {
        // An acknowledgment is our doing.
        kind::SETTINGS | kind::PING if frame.is_last_or_ack() => [None, None],
        kind::SETTINGS => [
            Some((Abuse::SettingsFrames, 1)),
            Some((Abuse::Settings, settings)),
        ],
        kind::PING => one(Abuse::Ping),
        kind::PRIORITY => one(Abuse::Priority),
        kind::RST_STREAM => one(Abuse::RstStream),
        kind::CONTINUATION => one(Abuse::Continuation),
        kind::DATA if frame.content() == 0 && !frame.is_last_or_ack() => one(Abuse::Empty),
        _ => [None, None],
    }
}

#[cfg(test)]
#[expect(clippy::big_endian_bytes, reason = "the order of the network")]
mod tests {
    use super::*;
    use crate::metrics::Registry;

    /// A frame of stream 0.
    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, 0], payload].concat()
    }

    fn watch(limits: FrameLimits) -> (Watch, Arc<Registry>) {
        let registry = Registry::new();
        (Watch::new(limits, &registry.cells(), 0), registry)
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_begins_anew_each_minute() {
        let limits = FrameLimits {
            ping: Some(2),
            ..FrameLimits::default()
        };
        let (watch, registry) = watch(limits);
        let ping = frame(kind::PING, 0, &[0; 8]);
        for _ in 0..3 {
            watch.read(&ping.repeat(2));
            assert_eq!(watch.abuse(), None);
            tokio::time::advance(MINUTE).await;
        }
        watch.read(&frame(kind::PING, 1, &[0; 8]).repeat(9));
        assert_eq!(watch.abuse(), None, "answers to ours");
        watch.read(&ping.repeat(5));
        assert_eq!(watch.abuse(), Some(Abuse::Ping));
        assert_eq!(registry.get(Metric::Http2PingExceeded), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn five_updates_are_judged_by_their_average() {
        let limits = FrameLimits {
            window_update: 100.0,
            ..FrameLimits::default()
        };
        let update = |by: u32| frame(kind::WINDOW_UPDATE, 0, &by.to_be_bytes());
        let (watch, _registry) = watch(limits);
        for by in [1, 1, 1, 1, 496, 1] {
            watch.read(&update(by));
            assert_eq!(watch.abuse(), None, "{by}");
        }
        for by in [1, 1, 1, 1] {
            watch.read(&update(by));
        }
        assert_eq!(watch.abuse(), Some(Abuse::WindowUpdate));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_library_decides_is_counted_by_what_it_writes() {
        let (watch, registry) = watch(FrameLimits::default());
        let reset = |code: u32| frame(kind::RST_STREAM, 0, &code.to_be_bytes());
        let goaway = |code: u8| frame(kind::GOAWAY, 0, &[0, 0, 0, 9, 0, 0, 0, code]);
        watch.wrote(&[reset(0), reset(8), reset(7), reset(1), goaway(0)].concat());
        assert_eq!(registry.get(Metric::Http2StreamsRefused), 1);
        assert_eq!(registry.get(Metric::Http2StreamErrors), 1);
        assert_eq!(registry.get(Metric::Http2ConnectionErrors), 0);
        watch.read(&frame(kind::CONTINUATION, 0, b"x").repeat(9));
        watch.wrote(&goaway(11));
        assert_eq!(registry.get(Metric::Http2ConnectionErrors), 1);
        assert_eq!(registry.get(Metric::Http2ContinuationExceeded), 1);
    }
}
