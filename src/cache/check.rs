//! Judging spans that nobody uses, as a start would, without writing.

use super::directory::{Directory, Place, Walked};
use super::format::Unverified;
use super::format::fragment::{FragmentError, claimed_key};
use super::format::object::ObjectContent;
use super::format::span_header::{SpanContent, StripeSlot};
use super::format::stripe_header::{StripeContent, StripeHeader};
use super::known::Known;
use super::options::{CacheOptions, SpanOptions};
use super::plan::Holding;
use super::span;
use super::stripe::{
    PageCount, Recovery, RecoveryReport, RecoveryStart, RecoveryStep, Stripe, StripeIdentity,
    StripeOptions,
};
use crate::base::aligned::AlignedBuf;
use crate::base::size::round_down;
use crate::device::{Device, DeviceError, open_read_only, read_blocking};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a stripe header.
const HEADER_BYTES: usize = 4096;

/// What a check found of a span; its text is a line for it and one for each
/// stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanCheck {
    /// The path as configured.
    pub path: PathBuf,
    /// What is there.
    pub found: SpanFound,
}

/// What lies at a span's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanFound {
    /// Nothing yet: the next start makes an empty span of it.
    Blank,
    /// A start would leave it out; the text says why.
    Refused(String),
    /// A span.
    Span {
        /// Good copies of its header, of two.
        headers: usize,
        /// Its stripes.
        stripes: Vec<StripeCheck>,
    },
}

/// What a check found of a stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeCheck {
    /// Its UUID.
    pub uuid: u128,
    /// Good copies of its header, of two.
    pub headers: usize,
    /// What a start would find; the text says why it would find nothing.
    pub report: Result<RecoveryReport, String>,
    /// Pages of its directory.
    pub pages: PageCount,
    /// What the directory leads to.
    pub fragments: Fragments,
}

/// The fragments that a directory leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// Whole ones.
    pub whole: u64,
    /// Damaged ones: those that were flushed once.
    pub damaged: u64,
    /// Heads of objects that were purged, which the next start takes away.
    pub purged: u64,
    /// Those that a crash left unwritten.
    pub unwritten: u64,
    /// Those that the device does not give.
    pub unread: u64,
}

impl Fragments {
    /// Counts `heads` of the whole ones as purged.
    const fn part_purged(&mut self, heads: u64) {
        self.purged = heads;
        self.whole = self.whole.saturating_sub(heads);
    }
}

impl SpanCheck {
    /// Whether a start would use it, and lose nothing that was there.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match &self.found {
            SpanFound::Blank => true,
            SpanFound::Refused(_) => false,
            SpanFound::Span { headers, stripes } => {
                *headers == 2 && stripes.iter().all(StripeCheck::is_sound)
            }
        }
    }
}

impl StripeCheck {
    fn is_sound(&self) -> bool {
        let whole = self.fragments.damaged == 0 && self.fragments.unread == 0;
        let is_used = self.report.as_ref().is_ok_and(|report| !report.dead);
        self.headers == 2 && whole && is_used && self.pages.bad == 0
    }
}

impl fmt::Display for SpanCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.found {
            SpanFound::Blank => write!(f, "{path}: blank; a start makes an empty span of it"),
            // It names the path itself.
            SpanFound::Refused(why) => f.write_str(why),
            SpanFound::Span { headers, stripes } => {
                write!(f, "{path}: a span, {headers} of 2 headers good")?;
                stripes
                    .iter()
                    .try_for_each(|stripe| write!(f, "\n  {stripe}"))
            }
        }
    }
}

impl fmt::Display for StripeCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "stripe {:032x}: {} of 2 headers good; ",
            self.uuid, self.headers
        )?;
        let report = match &self.report {
            Ok(report) => report,
            Err(why) => return f.write_str(why),
        };
        let stop = if report.clean {
            "stopped cleanly"
        } else {
            "not stopped cleanly"
        };
        let suspect = match (report.dead, report.suspect) {
            (true, _) => ", nothing of it is used: the state folder knows another past",
            (false, true) => ", used after revalidation only",
            (false, false) => "",
        };
        write!(
            f,
            "{stop}{suspect}; {} of {} pages bad; ",
            self.pages.bad, self.pages.read
        )?;
        let (blocks, batches) = (report.ring_blocks, report.batches_walked);
        write!(
            f,
            "{blocks} ring blocks and {batches} batches behind them; "
        )?;
        let found = &self.fragments;
        write!(
            f,
            "{} fragments whole, {} damaged, ",
            found.whole, found.damaged
        )?;
        write!(
            f,
            "{} lost in a crash, {} not read, {} purged",
            found.unwritten, found.unread, found.purged
        )
    }
}

/// Checks the spans of `options`, reading all that they hold and writing
/// nothing. The caller holds the lock of the state directory.
pub fn check_spans(options: &CacheOptions) -> impl Iterator<Item = SpanCheck> {
    let mut known = Known::of(options);
    for span in options.spans.iter().filter_map(|span| open_span(span).ok()) {
        known.meet(span.places());
    }
    options.spans.iter().map(move |span| SpanCheck {
        path: span.path.clone(),
        found: check_span(span, options, &known),
    })
}

fn check_span(span: &SpanOptions, options: &CacheOptions, known: &Known) -> SpanFound {
    let span = match open_span(span) {
        Ok(span) => span,
        Err(found) => return found,
    };
    SpanFound::Span {
        headers: span.headers,
        stripes: span.places().map(|p| p.check(options, known)).collect(),
    }
}

/// A span that can be read.
struct ReadSpan {
    device: Arc<dyn Device>,
    content: SpanContent,
    /// Good copies of its header.
    headers: usize,
}

impl ReadSpan {
    fn places(&self) -> impl Iterator<Item = StripePlace<'_>> {
        self.content.stripes.iter().map(|slot| StripePlace {
            device: &*self.device,
            span: self.content.uuid,
            slot,
            block: self.content.block,
        })
    }
}

/// The span, or what is there in its place.
fn open_span(span: &SpanOptions) -> Result<ReadSpan, SpanFound> {
    let device: Arc<dyn Device> = match open_read_only(&span.path) {
        Ok(Some(device)) if device.geometry().bytes == 0 => return Err(SpanFound::Blank),
        Ok(Some(device)) => Arc::new(device),
        Ok(None) if span.size.is_some() => return Err(SpanFound::Blank),
        Ok(None) => {
            let why = format!("{}: not there", span.path.display());
            return Err(SpanFound::Refused(why));
        }
        Err(error) => return Err(SpanFound::Refused(error.to_string())),
    };
    match span::inspect(&device, span) {
        Ok(Some((content, headers))) => Ok(ReadSpan {
            device,
            content,
            headers,
        }),
        Ok(None) => Err(SpanFound::Blank),
        Err(error) => Err(SpanFound::Refused(error.to_string())),
    }
}

fn newest(headers: &[StripeContent]) -> Option<&StripeContent> {
    headers.iter().max_by_key(|header| header.generation)
}

/// Where a stripe lies.
pub(super) struct StripePlace<'a> {
    pub(super) device: &'a dyn Device,
    /// Names its span.
    pub(super) span: u128,
    pub(super) slot: &'a StripeSlot,
    /// Multiple of all writes, bytes.
    pub(super) block: u32,
}

impl StripePlace<'_> {
    fn check(&self, options: &CacheOptions, known: &Known) -> StripeCheck {
        let headers = self.headers();
        let newest = newest(&headers);
        let (mut pages, mut fragments) = (PageCount::default(), Fragments::default());
        let report = match newest.map(|header| self.recover(header, options, known)) {
            None => Err("a start makes it anew, empty".to_owned()),
            Some(Err(why)) => Err(why),
            Some(Ok((stripe, report))) => {
                pages = stripe.page_count();
                let directory = stripe.directory();
                let unflushed = report.unflushed_from..report.unflushed_end;
                fragments = self.fragments(&directory, unflushed);
                fragments.part_purged(self.purged(&directory, known).objects);
                Ok(report)
            }
        };
        StripeCheck {
            uuid: self.slot.uuid,
            headers: headers.len(),
            report,
            pages,
            fragments,
        }
    }

    /// What its directory says that it holds; nothing, if a start would find
    /// nothing.
    pub(super) fn holding(&self, options: &CacheOptions, known: &Known) -> Holding {
        let headers = self.headers();
        let read = newest(&headers).and_then(|header| self.recover(header, options, known).ok());
        read.map_or_else(Holding::default, |(stripe, report)| {
            let directory = stripe.directory();
            let (census, purged) = (directory.census(), self.purged(&directory, known));
            Holding {
                objects: census.heads.saturating_sub(purged.objects),
                bytes: census.bytes.saturating_sub(purged.bytes),
                is_partial: false,
                is_suspect: report.suspect,
            }
        })
    }

    /// The instance that its newest header names.
    pub(super) fn noted_instance(&self) -> Option<u128> {
        newest(&self.headers()).map(|header| header.instance)
    }

    /// Its good headers.
    fn headers(&self) -> Vec<StripeContent> {
        let block = u64::from(self.block.max(4096));
        let last = round_down(self.slot.length, block).saturating_sub(block);
        let places = [0, last].into_iter();
        let read = places.filter_map(|offset| self.read(offset, HEADER_BYTES).ok());
        read.filter_map(|bytes| {
            let header = Unverified::<StripeHeader>::new(&bytes);
            header.verify(self.slot.uuid).ok()
        })
        .collect()
    }

    /// Whom it is of, as it says itself.
    const fn identity(&self, header: &StripeContent) -> StripeIdentity {
        StripeIdentity {
            uuid: self.slot.uuid,
            volume: self.slot.volume,
            instance: header.instance,
            run: u64::MAX,
            epoch: u64::MAX,
        }
    }

    /// What a start would know of it beforehand.
    fn start(
        &self,
        header: &StripeContent,
        options: &CacheOptions,
        known: &Known,
    ) -> RecoveryStart {
        let own = RecoveryStart {
            identity: self.identity(header),
            known_instance: Some(header.instance),
            last_run: 0,
            length: self.slot.length,
            block: self.block,
            options: StripeOptions {
                fragment_bytes: options.target_fragment_size,
                ..StripeOptions::default()
            },
        };
        known.judge(self.span, own)
    }

    /// What a start would read.
    fn recover(
        &self,
        header: &StripeContent,
        options: &CacheOptions,
        known: &Known,
    ) -> Result<(Stripe, RecoveryReport), String> {
        let mut recovery = Recovery::new(self.start(header, options, known));
        let read = |offset, length| {
            let length = usize::try_from(length).unwrap_or(0);
            self.read(offset, length).ok()
        };
        while let RecoveryStep::Read { offset, length } = recovery.step() {
            recovery.complete(read(offset, length).as_deref().unwrap_or_default());
        }
        let (mut stripe, report) = recovery.finish().map_err(|error| error.to_string())?;
        stripe.read_all(read);
        Ok((stripe, report))
    }

    fn fragments(&self, directory: &Directory, unflushed: Range<u64>) -> Fragments {
        let mut found = Fragments::default();
        let buckets = 0..directory.bucket_count();
        for walked in buckets.flat_map(|bucket| directory.walk(bucket)) {
            let crashed = unflushed.contains(&walked.place.position);
            match self.judge(directory, &walked) {
                None => found.unread += 1,
                Some(Ok(())) => found.whole += 1,
                Some(Err(_)) if crashed => found.unwritten += 1,
                Some(Err(_)) => found.damaged += 1,
            }
        }
        found
    }

    /// The objects that a start would take out because they were purged, and the
    /// bytes of their heads' fragments.
    fn purged(&self, directory: &Directory, known: &Known) -> Holding {
        let purges = known.purges().iter();
        let found = purges.flat_map(|(key, epoch)| {
            let places = directory.lookup(*key);
            places.filter(|place| self.is_older(directory, place, (*key, *epoch)))
        });
        let each = found.map(|place| Holding {
            objects: 1,
            bytes: place.entry.size(),
            ..Holding::default()
        });
        each.sum()
    }

    /// Whether a key's object lies there, and its fill began before the epoch.
    fn is_older(&self, directory: &Directory, place: &Place, (key, epoch): (u128, u64)) -> bool {
        let length = usize::try_from(place.length).unwrap_or(0);
        let bytes = self.read(place.offset, length).ok();
        let bytes = bytes.map(AlignedBuf::into_bytes);
        let head = bytes.and_then(|bytes| directory.verify(place, key, &bytes).ok());
        let content = head.and_then(|head| ObjectContent::decode(&head.meta).ok());
        content.is_some_and(|content| content.epoch < epoch)
    }

    /// Whether the fragment is whole; `None` if it can't be read.
    fn judge(&self, directory: &Directory, walked: &Walked) -> Option<Result<(), FragmentError>> {
        let place = &walked.place;
        let length = usize::try_from(place.length).ok()?;
        let bytes = self.read(place.offset, length).ok()?.into_bytes();
        let key = claimed_key(&bytes).unwrap_or(0);
        Some(directory.verify(place, key, &bytes).map(drop))
    }

    fn read(&self, offset: u64, length: usize) -> Result<AlignedBuf, DeviceError> {
        read_blocking(self.device, self.slot.offset + offset, length)
    }
}
