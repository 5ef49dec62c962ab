//! Opening spans together: volumes share them.

use super::open::live_spans;
use super::{Cache, State};
use crate::cache::invalidation::StateError;
use crate::cache::known::Known;
use crate::cache::options::{CacheOptions, VolumeOptions};
use crate::cache::plan::{SpanPlan, plan};
use crate::cache::span::{Allotted, Judged, Room, Span, SpanError, allot};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// Spans that are to be taken, each with the stripes that it is to have.
pub(super) struct Shares {
    spans: Vec<Result<(Judged, Allotted), SpanError>>,
}

impl Shares {
    /// What volumes have of the spans. While one of them is missing, the others
    /// stay as they are: it would be counted as lost, and be back tomorrow.
    pub(super) fn of(judged: Vec<Result<Judged, SpanError>>, options: &CacheOptions) -> Self {
        let judged = refuse_twins(judged);
        let volumes = &options.volumes;
        let is_fixed = !volumes.is_empty() && judged.iter().any(Result::is_err);
        if is_fixed {
            tracing::warn!("a span is missing: the volumes on the others stay as they are");
        }
        let sound = judged.iter().flatten();
        let rooms: Vec<Room> = sound.map(|span| span.room(is_fixed)).collect();
        let mut allotted = allot(&rooms, volumes).into_iter();
        let spans = judged.into_iter().map(|span| {
            let span = span?;
            Ok((span, allotted.next().unwrap_or_default()))
        });
        Self {
            spans: spans.collect(),
        }
    }

    /// Writes the spans' headers. What was cleared of a volume stays so in the
    /// stripes that it hands over.
    pub(super) fn take(self, state: &State) -> Vec<Result<Span, SpanError>> {
        let sound = self.spans.iter().flatten();
        let carried = carry_clears(state, sound.map(|(_, allotted)| allotted));
        if let Err(error) = carried {
            tracing::error!(%error, "what was cleared of a volume may come back in another");
        }
        let spans = self.spans.into_iter().map(|span| {
            let (judged, allotted) = span?;
            judged.say(&allotted);
            judged.take(allotted)
        });
        spans.collect()
    }
}

/// Refuses each span that has the UUID of one before it: stripes, what they hold
/// and what is remembered of them go by these.
pub(in crate::cache) fn refuse_twins(
    judged: Vec<Result<Judged, SpanError>>,
) -> Vec<Result<Judged, SpanError>> {
    let mut first: HashMap<u128, PathBuf> = HashMap::new();
    let once = judged.into_iter().map(|span| {
        let span = span?;
        let (uuid, path) = (span.uuid(), span.path().to_owned());
        let span = span.unless_twin(first.get(&uuid).map(PathBuf::as_path))?;
        first.insert(uuid, path);
        Ok(span)
    });
    once.collect()
}

/// Takes a span into the volumes of `others`, which stay as they are.
pub(super) fn join(
    judged: Judged,
    others: Vec<Room>,
    options: &CacheOptions,
    state: &State,
) -> Result<Span, SpanError> {
    let mut rooms = vec![judged.room(false)];
    rooms.extend(others);
    let mut allotted = allot(&rooms, &options.volumes);
    let allotted = allotted.swap_remove(0);
    if let Err(error) = carry_clears(state, [&allotted]) {
        tracing::error!(%error, "what was cleared of a volume may come back in another");
    }
    judged.say(&allotted);
    judged.take(allotted)
}

/// Writes down what was cleared of volumes for those that stripes of theirs go
/// over to.
fn carry_clears<'a>(
    state: &State,
    spans: impl IntoIterator<Item = &'a Allotted>,
) -> Result<(), StateError> {
    let pieces = spans.into_iter().flat_map(|allotted| &allotted.pieces);
    let moved = pieces.filter_map(|piece| Some((piece.was?, piece.slot.volume)));
    let moves: BTreeSet<(u32, u32)> = moved.filter(|(was, is)| was != is).collect();
    state.carry_clears(&moves)
}

impl Cache {
    /// What a start with `options` would keep of what is stored now, and what it
    /// would drop. Reads directories and devices, and writes nothing; blocks.
    /// What has not been read since the start is not counted, and said to be
    /// missing: see [`Self::loaded_within`].
    #[must_use]
    pub fn plan(&self, options: &CacheOptions) -> Vec<SpanPlan> {
        let stripes = self.volume.stripes();
        let known = |uuid: u128| {
            let stripe = stripes.iter().find(|stripe| stripe.uuid == uuid)?;
            Some(stripe.holding())
        };
        let (mut plans, found) = plan(options, Known::NOTHING, &known);
        let mut gone = live_spans(&self.spans.lock());
        gone.retain(|span| !found.contains(&span.uuid));
        plans.extend(gone.iter().map(|span| {
            let stripes = span.stripes();
            let stripes = stripes
                .iter()
                .map(|stripe| (stripe.slot(), stripe.holding()));
            SpanPlan::gone(span.options.path.clone(), stripes.collect())
        }));
        plans
    }
}

/// The numbers of the volumes that are configured; none where all is one.
pub(super) fn numbers(options: &CacheOptions) -> BTreeSet<u32> {
    let own = options.spans.iter().map(|span| u32::from(span.volume));
    let shared = options.volumes.iter();
    let shared = shared.map(|volume| u32::from(volume.number));
    let all: BTreeSet<u32> = own.filter(|volume| *volume != 0).chain(shared).collect();
    let has_rest = options.volumes.is_empty() && options.spans.iter().any(|s| s.volume == 0);
    let rest = has_rest && !all.is_empty();
    all.into_iter().chain(rest.then_some(0)).collect()
}

/// Says which volumes got nothing.
pub(super) fn say_without_room(volumes: &[VolumeOptions], stripes: impl Iterator<Item = u32>) {
    let with_room: BTreeSet<u32> = stripes.collect();
    for volume in volumes {
        let number = u32::from(volume.number);
        if !with_room.contains(&number) {
            tracing::warn!(
                volume = number,
                "no span has room for this volume: its hosts use all others"
            );
        }
    }
}
