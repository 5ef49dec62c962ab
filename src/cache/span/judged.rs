//! From a device that was judged to a span with its stripes.

use super::allot::{Allotted, Room, allot};
use super::{Intent, Judgement, Place, Span, SpanError, say_tier, tier};
use crate::base::prng::system_u128;
use crate::cache::format::span_header::{SpanContent, StripeSlot};
use crate::cache::options::SpanOptions;
use crate::cache::tier::SpanTier;
use crate::device::{Device, OpenedDevice};
use std::path::Path;
use std::sync::Arc;

/// A device that is ours or may become so; nothing has been written to it.
#[derive(Clone)]
pub(crate) struct Judged {
    device: Arc<dyn Device>,
    options: SpanOptions,
    /// The header that holds; without stripes if it is yet to be made.
    content: SpanContent,
    is_blank: bool,
    /// The size that it had, if there is more now.
    grown_from: Option<u64>,
    /// The tier by option or by the kernel's flag.
    fast: Option<bool>,
}

impl Judged {
    /// It as volumes share it; `is_fixed` keeps what is there as it is.
    pub(crate) fn room(&self, is_fixed: bool) -> Room {
        let stripes = self.content.stripes.clone();
        Room {
            is_fixed: is_fixed && !self.is_blank,
            ..Room::fixed(self.content.size, stripes, self.options.volume)
        }
    }

    /// Names the span; a new one has a name of this moment.
    pub(crate) const fn uuid(&self) -> u128 {
        self.content.uuid
    }

    /// The stripes that are there.
    pub(crate) fn slots(&self) -> &[StripeSlot] {
        &self.content.stripes
    }

    /// Its configured path.
    pub(crate) fn path(&self) -> &Path {
        &self.options.path
    }

    /// It, unless it is a copy of `first`, a span at another path.
    pub(crate) fn unless_twin(self, first: Option<&Path>) -> Result<Self, SpanError> {
        match first {
            Some(first) => Err(SpanError::Twin {
                path: self.options.path,
                first: first.to_owned(),
            }),
            None => Ok(self),
        }
    }

    /// Its device.
    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Multiple of all writes, bytes.
    pub(crate) const fn block(&self) -> u32 {
        self.content.block
    }

    /// Tells an operator what becomes of what is there.
    pub(crate) fn say(&self, allotted: &Allotted) {
        let path = self.options.path.display();
        if let Some(was) = self.grown_from {
            tracing::warn!(%path, was, is = self.content.size, "the span has grown");
        }
        for slot in &allotted.dropped {
            tracing::error!(%path, volume = slot.volume, bytes = slot.length,
                "a stripe is given up with all that it holds: its volume has another size now, or none");
        }
        for piece in &allotted.pieces {
            let (volume, bytes) = (piece.slot.volume, piece.slot.length);
            match piece.was {
                Some(was) if was != volume => tracing::warn!(%path, was, volume, bytes,
                    "a stripe goes over to another volume with what it holds"),
                None if !self.is_blank => tracing::info!(%path, volume, bytes, "a stripe is made"),
                Some(_) | None => {}
            }
        }
    }

    /// Makes it a span with these stripes, and writes that down.
    pub(crate) fn take(mut self, allotted: Allotted) -> Result<Span, SpanError> {
        let place = Place {
            device: &self.device,
            path: &self.options.path,
            cap: self.options.size,
        };
        let mut new_stripes = self.content.share(allotted);
        if self.is_blank {
            place.blank_ends(self.content.size)?;
        } else {
            let renewed = place.renew_lost_stripes(&mut self.content, &new_stripes)?;
            new_stripes.extend(renewed);
        }
        place.write_header(&self.content)?;
        if self.options.tier.is_none() {
            say_tier(place.path, self.content.fast, self.fast, self.is_blank);
        }
        Ok(Span {
            device: self.device,
            content: self.content,
            formatted: self.is_blank,
            new_stripes,
        })
    }
}

/// Judges `opened` as the span that `options` describe.
pub(crate) fn judge(
    opened: &OpenedDevice,
    options: &SpanOptions,
    intent: Intent,
) -> Result<Judged, SpanError> {
    let place = Place {
        device: &opened.device,
        path: &options.path,
        cap: options.size,
    };
    let fast = tier(opened, options).map(|tier| tier == SpanTier::Fast);
    let mut judged = Judged {
        device: Arc::clone(&opened.device),
        options: options.clone(),
        content: SpanContent::default(),
        is_blank: false,
        grown_from: None,
        fast,
    };
    match (place.judge()?, intent) {
        (Judgement::Ours(content), Intent::Use) => {
            let content = place.checked(content.for_tier(options.tier))?;
            judged.grown_from = place.has_grown(&content).then_some(content.size);
            judged.content = place.grown(content);
        }
        (Judgement::Ours(_) | Judgement::Blank, _) | (_, Intent::InitForce) => {
            judged.content = place.make(fast.unwrap_or(false))?;
            judged.is_blank = true;
        }
        (other, _) => return Err(place.refusal(&other)),
    }
    Ok(judged)
}

/// Opens `opened` as a span that shares nothing with others.
pub(crate) fn open(
    opened: &OpenedDevice,
    options: &SpanOptions,
    intent: Intent,
) -> Result<Span, SpanError> {
    let judged = judge(opened, options, intent)?;
    let allotted = allot(&[judged.room(false)], &[]).pop();
    judged.take(allotted.unwrap_or_default())
}

impl SpanContent {
    /// The same header, for the tier that an operator asks for now.
    fn for_tier(mut self, tier: Option<SpanTier>) -> Self {
        let fast = tier.map_or(self.fast, |tier| tier == SpanTier::Fast);
        if fast != self.fast {
            self.fast = fast;
            self.generation += 1;
        }
        self
    }

    /// Takes over what was allotted to it; gives the UUIDs of new stripes.
    fn share(&mut self, allotted: Allotted) -> Vec<u128> {
        let mut new = Vec::new();
        let slots = allotted.pieces.into_iter().map(|piece| {
            let mut slot = piece.slot;
            if piece.was.is_none() {
                slot.uuid = system_u128();
                new.push(slot.uuid);
            }
            slot
        });
        let slots: Vec<StripeSlot> = slots.collect();
        if slots != self.stripes {
            self.generation += 1;
            self.stripes = slots;
        }
        new
    }
}
