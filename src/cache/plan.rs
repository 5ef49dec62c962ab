//! What a start with other spans or volumes would keep of what is stored.
//!
//! It judges as the start does, and writes nothing.

use super::check::StripePlace;
use super::known::Known;
use super::options::{CacheOptions, SpanOptions};
use super::span::{self, Allotted, Intent, Judged, Piece, Room, SpanError, allot};
use crate::cache::format::span_header::StripeSlot;
use crate::device::{self, OpenRequest};
use std::collections::HashMap;
use std::iter::Sum;
use std::ops::Add;
use std::path::PathBuf;

/// How much a stripe holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Objects: heads in the directory.
    pub objects: u64,
    /// Bytes of their fragments, to the directory's accuracy: up to 1/16 more.
    pub bytes: u64,
    /// There may be more: a part of the directory has not been read yet.
    pub is_partial: bool,
    /// Some of it was away, and is used after revalidation only.
    pub is_suspect: bool,
}

impl Add for Holding {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            bytes: self.bytes.saturating_add(other.bytes),
            is_partial: self.is_partial || other.is_partial,
            is_suspect: self.is_suspect || other.is_suspect,
        }
    }
}

impl Sum for Holding {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), Self::add)
    }
}

/// What becomes of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripeFate {
    /// It stays as it is.
    Kept,
    /// It goes over from this volume, with what it holds.
    HandedOver {
        /// The volume that has it now.
        from: u32,
    },
    /// It is lost, with what it holds.
    Dropped,
    /// It is made, and empty.
    New,
}

/// A stripe of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripePlan {
    /// The volume that it is to belong to, or is lost by.
    pub volume: u32,
    /// Its length, bytes.
    pub length: u64,
    /// What becomes of it.
    pub fate: StripeFate,
    /// What it holds now.
    pub holding: Holding,
}

/// A span of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanPlan {
    /// The path as configured.
    pub path: PathBuf,
    /// Why a start would leave it out; then its stripes are not known.
    pub refused: Option<String>,
    /// Whether it is in use now, and no longer configured.
    pub is_gone: bool,
    /// Its stripes, lost ones included.
    pub stripes: Vec<StripePlan>,
}

impl StripePlan {
    const fn of(slot: &StripeSlot, fate: StripeFate, holding: Holding) -> Self {
        Self {
            volume: slot.volume,
            length: slot.length,
            fate,
            holding,
        }
    }
}

impl SpanPlan {
    /// A span in use that is no longer configured.
    pub(super) fn gone(path: PathBuf, stripes: Vec<(StripeSlot, Holding)>) -> Self {
        let lost = |(slot, holding): (StripeSlot, Holding)| {
            StripePlan::of(&slot, StripeFate::Dropped, holding)
        };
        Self {
            path,
            refused: None,
            is_gone: true,
            stripes: stripes.into_iter().map(lost).collect(),
        }
    }

    /// What is kept of it, and what is lost.
    #[must_use]
    pub fn sums(&self) -> (Holding, Holding) {
        let is_lost = |stripe: &&StripePlan| stripe.fate == StripeFate::Dropped;
        let (lost, kept): (Vec<_>, Vec<_>) = self.stripes.iter().partition(is_lost);
        let sum = |stripes: Vec<&StripePlan>| stripes.iter().map(|s| s.holding).sum();
        (sum(kept), sum(lost))
    }
}

/// A configured span as it lies there.
struct Sight {
    options: SpanOptions,
    seen: Result<Seen, String>,
}

enum Seen {
    /// What a start would open.
    Device(Box<Judged>),
    /// Nothing yet: a file of so many bytes would be made.
    Nothing(u64),
}

/// What a start with `options` would do, while nothing is in use.
#[must_use]
pub fn plan_storage(options: &CacheOptions) -> Vec<SpanPlan> {
    plan(options, Known::of(options), &|_| None).0
}

/// What a start with `options` would do, and the UUIDs of the spans that it
/// would find; `in_use` tells what stripes in use hold, `known` is what it would
/// know of the others.
pub(super) fn plan(
    options: &CacheOptions,
    mut known: Known,
    in_use: &dyn Fn(u128) -> Option<Holding>,
) -> (Vec<SpanPlan>, Vec<u128>) {
    let mut sights: Vec<Sight> = options.spans.iter().map(look).collect();
    refuse_twins(&mut sights);
    sights.iter().for_each(|sight| known.meet(sight.places()));
    let is_whole = sights.iter().all(|sight| sight.seen.is_ok());
    let is_fixed = !is_whole && !options.volumes.is_empty();
    let seen = sights
        .iter()
        .filter_map(|sight| Some((sight, sight.seen.as_ref().ok()?)));
    let rooms: Vec<Room> = seen
        .map(|(sight, seen)| seen.room(&sight.options, is_fixed))
        .collect();
    let mut allotted = allot(&rooms, &options.volumes).into_iter();
    let uuids = sights.iter().filter_map(Sight::uuid).collect();
    let plans = sights.into_iter().map(|sight| {
        let stripes = match &sight.seen {
            Ok(seen) => stripes(&allotted.next().unwrap_or_default(), &|slot| {
                in_use(slot.uuid).unwrap_or_else(|| seen.read(slot, options, &known))
            }),
            Err(_) => Vec::new(),
        };
        SpanPlan {
            path: sight.options.path,
            refused: sight.seen.err(),
            is_gone: false,
            stripes,
        }
    });
    (plans.collect(), uuids)
}

/// Refuses what a start refuses: a span with the UUID of one before it.
fn refuse_twins(sights: &mut [Sight]) {
    let mut first: HashMap<u128, PathBuf> = HashMap::new();
    for sight in sights {
        let Ok(Seen::Device(judged)) = &sight.seen else {
            continue;
        };
        let known = first.get(&judged.uuid()).map(PathBuf::as_path);
        if let Err(twin) = judged.clone().unless_twin(known) {
            sight.seen = Err(twin.to_string());
            continue;
        }
        first.insert(judged.uuid(), judged.path().to_owned());
    }
}

fn look(span: &SpanOptions) -> Sight {
    let request = OpenRequest {
        size: span.size,
        ..OpenRequest::at(&span.path)
    };
    let seen = || -> Result<Seen, SpanError> {
        Ok(match device::open_to_read(&request)? {
            Some(opened) => Seen::Device(Box::new(span::judge(&opened, span, Intent::Use)?)),
            None => {
                device::check(&request)?;
                Seen::Nothing(span.size.unwrap_or(0))
            }
        })
    };
    Sight {
        seen: seen().map_err(|error| error.to_string()),
        options: span.clone(),
    }
}

impl Sight {
    /// Where the stripes lie that are there.
    fn places(&self) -> impl Iterator<Item = StripePlace<'_>> {
        let judged = match &self.seen {
            Ok(Seen::Device(judged)) => Some(&**judged),
            Ok(Seen::Nothing(_)) | Err(_) => None,
        };
        let slots = judged.map(|judged| judged.slots().iter().map(|slot| place(judged, slot)));
        slots.into_iter().flatten()
    }

    fn uuid(&self) -> Option<u128> {
        match &self.seen {
            Ok(Seen::Device(judged)) => Some(judged.uuid()),
            Ok(Seen::Nothing(_)) | Err(_) => None,
        }
    }
}

impl Seen {
    fn room(&self, options: &SpanOptions, is_fixed: bool) -> Room {
        match self {
            Self::Device(judged) => judged.room(is_fixed),
            Self::Nothing(size) => Room {
                is_fixed: false,
                ..Room::fixed(*size, Vec::new(), options.volume)
            },
        }
    }

    /// What a stripe holds, read from the device.
    fn read(&self, slot: &StripeSlot, options: &CacheOptions, known: &Known) -> Holding {
        match self {
            Self::Device(judged) => place(judged, slot).holding(options, known),
            Self::Nothing(_) => Holding::default(),
        }
    }
}

fn place<'a>(judged: &'a Judged, slot: &'a StripeSlot) -> StripePlace<'a> {
    StripePlace {
        device: judged.device(),
        span: judged.uuid(),
        slot,
        block: judged.block(),
    }
}

/// Its stripes as they are to be, then those that are lost.
fn stripes(allotted: &Allotted, holding: &dyn Fn(&StripeSlot) -> Holding) -> Vec<StripePlan> {
    let fate = |piece: &Piece| match piece.was {
        None => StripeFate::New,
        Some(was) if was == piece.slot.volume => StripeFate::Kept,
        Some(from) => StripeFate::HandedOver { from },
    };
    let pieces = allotted.pieces.iter().map(|piece| {
        let held = piece.was.map(|_| holding(&piece.slot));
        StripePlan::of(&piece.slot, fate(piece), held.unwrap_or_default())
    });
    let dropped = allotted.dropped.iter();
    let dropped = dropped.map(|slot| StripePlan::of(slot, StripeFate::Dropped, holding(slot)));
    pieces.chain(dropped).collect()
}
