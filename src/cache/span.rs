//! Spans: whose a device is, and the one header that says so.
//!
//! The first and the last MiB of a span belong to its header, at 8 KiB and
//! again where the last MiB begins; stripes lie between them. Nothing is
//! written to a device before it is known to be ours or blank.

mod allot;
mod check;
mod judged;
mod layout;
mod signature;

use super::format::span_header::{SpanContent, SpanHeader};
use super::format::stripe_header::StripeHeader;
use super::format::{FormatError, Unverified};
use super::options::SpanOptions;
use super::tier::SpanTier;
use crate::base::aligned::AlignedBuf;
use crate::base::prng::system_u128;
use crate::base::size::MIB;
use crate::device::{
    Device, DeviceError, OpenError, OpenedDevice, flush_blocking, read_blocking, write_blocking,
};
use layout::{first_offset, second_offset};
use signature::{Ends, Signature};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use allot::{Allotted, MIN_STRIPE_BYTES, Piece, Room, allot};
pub(crate) use check::check;
pub(crate) use judged::{Judged, judge, open};
pub(crate) use layout::MIN_SPAN_BYTES;

/// Why a span is left out. Nothing was written to it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpanError {
    /// It can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It can't be read or written.
    #[error("{}: {error}", path.display())]
    Device { path: PathBuf, error: DeviceError },
    /// Somebody else's mark is on it.
    #[error("{p} holds {what} (mark at byte {offset}); nothing was written. \
             To take it over and lose what it holds: traffic_ctl storage init {p} --force",
             p = path.display())]
    Foreign {
        path: PathBuf,
        what: &'static str,
        offset: u64,
    },
    /// It is neither blank nor known.
    #[error("{p} is not blank and holds nothing known here; nothing was written. \
             To take it over and lose what it holds: traffic_ctl storage init {p} --force",
             p = path.display())]
    Unknown { path: PathBuf },
    /// Ours, of another format.
    #[error("{p} is a span of format version {found}, which this program does not read; \
             nothing was written. To empty it: traffic_ctl storage init {p} --force",
             p = path.display())]
    Version { path: PathBuf, found: u16 },
    /// A copy of another span that is in use.
    #[error("{p} has the span UUID of {first}: one is a copy of the other; nothing was written. \
             Take away the copy, or empty it: traffic_ctl storage init {p} --force",
             p = path.display(), first = first.display())]
    Twin { path: PathBuf, first: PathBuf },
    /// Ours, and shorter than it was.
    #[error("{p} is a span of {was} bytes, and {is} are there; nothing was written. \
             Give it its size again, or empty it: traffic_ctl storage init {p} --force",
             p = path.display())]
    Truncated { path: PathBuf, was: u64, is: u64 },
    /// Too small.
    #[error("{}: {bytes} bytes, a span needs {MIN_SPAN_BYTES}", path.display())]
    TooSmall { path: PathBuf, bytes: u64 },
}

/// What the two ends of a device say.
#[derive(Debug)]
enum Judgement {
    Ours(SpanContent),
    Blank,
    Foreign(Signature),
    OtherVersion(u16),
    Unknown,
}

/// What to do with a device that may be a span.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Intent {
    /// Use it if it is ours or blank.
    Use,
    /// As `Use`, but ours begins anew.
    Clear,
    /// Begin anew, if it is ours or blank.
    Init,
    /// Begin anew whatever is there.
    InitForce,
}

/// A device that is ours, open, with a valid header.
#[derive(Clone)]
pub(crate) struct Span {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) content: SpanContent,
    /// True when it was made just now, and is empty.
    pub(crate) formatted: bool,
    /// Stripes that are to be formatted.
    pub(crate) new_stripes: Vec<u128>,
}

impl Span {
    /// The span's tier.
    pub(crate) const fn tier(&self) -> SpanTier {
        tier_of(self.content.fast)
    }
}

/// The header of a span on `device`, and how many of its two places hold it;
/// `None` for a blank device. Nothing is written.
pub(crate) fn inspect(
    device: &Arc<dyn Device>,
    options: &SpanOptions,
) -> Result<Option<(SpanContent, usize)>, SpanError> {
    let place = Place {
        device,
        path: &options.path,
        cap: options.size,
    };
    let content = match place.judge()? {
        Judgement::Ours(content) => place.checked(content)?,
        Judgement::Blank => return Ok(None),
        other @ (Judgement::Foreign(_) | Judgement::OtherVersion(_) | Judgement::Unknown) => {
            return Err(place.refusal(&other));
        }
    };
    let mut good = 0;
    for offset in [first_offset(), second_offset(content.size)] {
        let header = place.header_at(offset);
        good += usize::from(header.is_ok_and(|header| header.as_ref() == Ok(&content)));
    }
    Ok(Some((content, good)))
}

const fn tier_of(is_fast: bool) -> SpanTier {
    if is_fast {
        SpanTier::Fast
    } else {
        SpanTier::Capacity
    }
}

/// The tier by option, else by the kernel's rotational flag.
fn tier(opened: &OpenedDevice, options: &SpanOptions) -> Option<SpanTier> {
    options.tier.or_else(|| {
        Some(if opened.rotational? {
            SpanTier::Capacity
        } else {
            SpanTier::Fast
        })
    })
}

/// Tells an operator who named no tier which one the span is in, and why:
/// virtual and loop devices often claim to rotate.
fn say_tier(path: &Path, is_fast: bool, flag: Option<bool>, formatted: bool) {
    let tier = tier_of(is_fast);
    let why = match (formatted, flag) {
        (false, _) => "its header says so",
        (true, Some(true)) => "the kernel says that it does not rotate",
        (true, Some(false)) => {
            "the kernel says that it rotates, as it often does of \
                                virtual and loop devices"
        }
        (true, None) => "the kernel does not say whether it rotates",
    };
    tracing::warn!(path = %path.display(), %tier,
        "no tier= in storage.config: {why}; name it if that is wrong");
}

/// Bytes that are read at a time where a whole end can't be.
const PIECE_BYTES: usize = 4096;

/// The first or the last MiB of a device.
struct End {
    /// What can't be read is zeros here.
    bytes: AlignedBuf,
    /// Why not all of it could be read.
    unread: Option<SpanError>,
}

/// The value; an error is kept for who finds none elsewhere.
fn ok_or_kept<T>(value: Result<T, SpanError>, kept: &mut Option<SpanError>) -> Option<T> {
    value.map_err(|error| *kept = Some(error)).ok()
}

/// A device under judgement.
struct Place<'a> {
    device: &'a Arc<dyn Device>,
    path: &'a Path,
    cap: Option<u64>,
}

impl Place<'_> {
    fn judge(&self) -> Result<Judgement, SpanError> {
        let size = self.device.geometry().bytes;
        let (first, last) = self.ends(size)?;
        let ends = Ends {
            first: &first.bytes,
            last: &last.bytes,
            size,
        };
        if let Some(signature) = ends.signature() {
            return Ok(Judgement::Foreign(signature));
        }
        let unread = first.unread.or(last.unread);
        if unread.is_none() && ends.blank() {
            return Ok(Judgement::Blank);
        }
        match (self.ours(size)?, unread) {
            (ours @ Judgement::Ours(_), _) => Ok(ours),
            (_, Some(unread)) => Err(unread),
            (other, None) => Ok(other),
        }
    }

    /// The newest header at the places where one may be, and can be read.
    fn ours(&self, size: u64) -> Result<Judgement, SpanError> {
        let mut other = Judgement::Unknown;
        let mut best: Option<SpanContent> = None;
        let capped = self.cap.map(|cap| second_offset(cap.min(size)));
        let places = [Some(first_offset()), Some(second_offset(size)), capped];
        let mut unread = None;
        for offset in places.into_iter().flatten() {
            let Some(header) = ok_or_kept(self.header_at(offset), &mut unread) else {
                continue;
            };
            match header {
                Ok(content)
                    if best
                        .as_ref()
                        .is_none_or(|b| b.generation < content.generation) =>
                {
                    best = Some(content);
                }
                Err(FormatError::Version { found }) => other = Judgement::OtherVersion(found),
                Ok(_) | Err(_) => {}
            }
        }
        match (best, unread) {
            (Some(best), _) => Ok(Judgement::Ours(best)),
            (None, Some(unread)) => Err(unread),
            (None, None) => Ok(other),
        }
    }

    fn header_at(&self, offset: u64) -> Result<Result<SpanContent, FormatError>, SpanError> {
        let bytes = self.read(offset, layout::HEADER_BYTES)?;
        Ok(Unverified::<SpanHeader>::new(&bytes).verify())
    }

    /// `content`, if the device is as large as it says.
    fn checked(&self, content: SpanContent) -> Result<SpanContent, SpanError> {
        let is = self.device.geometry().bytes;
        if content.size > is {
            return Err(SpanError::Truncated {
                path: self.path.to_owned(),
                was: content.size,
                is,
            });
        }
        self.say_size(&content, is);
        Ok(content)
    }

    /// Tells who set a size that it is another one.
    fn say_size(&self, content: &SpanContent, is: u64) {
        let Some(cap) = self.cap else { return };
        let (path, size) = (self.path.display(), content.size);
        if layout::usable(cap, content.block) < size {
            tracing::warn!(%path, size,
                "the span keeps the size it was made with; a smaller one holds after init");
        } else if cap > is && cap - is >= MIN_STRIPE_BYTES {
            tracing::warn!(%path, size, %cap,
                "the span is smaller than its SIZE in storage.config; a file has that after \
                 truncate -s {cap} {path} and a start, which keeps what it holds");
        }
    }

    /// `content` with the new room of a device that has grown, if that holds a
    /// stripe.
    fn grown(&self, content: SpanContent) -> SpanContent {
        if !self.has_grown(&content) {
            return content;
        }
        SpanContent {
            size: self.size_now(content.block),
            generation: content.generation + 1,
            ..content
        }
    }

    fn has_grown(&self, content: &SpanContent) -> bool {
        self.size_now(content.block) >= content.size.saturating_add(MIN_STRIPE_BYTES)
    }

    /// The bytes that a span made now would have.
    fn size_now(&self, block: u32) -> u64 {
        let is = self.device.geometry().bytes;
        layout::usable(self.cap.map_or(is, |cap| cap.min(is)), block)
    }

    /// A new header for this device, without stripes.
    fn make(&self, fast: bool) -> Result<SpanContent, SpanError> {
        let geometry = self.device.geometry();
        let block = geometry.physical.max(4096).next_power_of_two();
        let size = self.size_now(block);
        if size < MIN_SPAN_BYTES {
            return Err(SpanError::TooSmall {
                path: self.path.to_owned(),
                bytes: size,
            });
        }
        Ok(SpanContent {
            uuid: system_u128(),
            generation: 0,
            size,
            block,
            fast,
            stripes: Vec::new(),
        })
    }

    /// Wipes both ends: no older mark or header is left to be found again.
    fn blank_ends(&self, size: u64) -> Result<(), SpanError> {
        let zeros = AlignedBuf::zeroed(layout::END_BYTES).into_bytes();
        let device_end = self.last_start(self.device.geometry().bytes);
        for offset in [0, second_offset(size), device_end] {
            write_blocking(&**self.device, offset, zeros.clone())
                .map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Writes the header to its two places, where it is not there already: a
    /// sector that can't be read is healed by a write.
    fn write_header(&self, content: &SpanContent) -> Result<(), SpanError> {
        for offset in [second_offset(content.size), first_offset()] {
            let is_there = |found: Result<_, _>| found.as_ref() == Ok(content);
            if self.header_at(offset).is_ok_and(is_there) {
                continue;
            }
            let bytes = content.encode().into_bytes();
            write_blocking(&**self.device, offset, bytes)
                .and_then(|()| flush_blocking(&**self.device))
                .map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Gives stripes that lost both headers a new UUID: nothing of what they
    /// held can come back then. Gives the new UUIDs; those of `new` have none.
    ///
    /// # Errors
    /// When one can't be read and the other is not there: it may come back.
    fn renew_lost_stripes(
        &self,
        content: &mut SpanContent,
        new: &[u128],
    ) -> Result<Vec<u128>, SpanError> {
        let mut renewed = Vec::new();
        let block = content.block;
        let slots = content.stripes.iter_mut();
        for slot in slots.filter(|slot| !new.contains(&slot.uuid)) {
            let end = slot.offset + layout::usable(slot.length, block);
            let mut unread = None;
            let places = [slot.offset, end.saturating_sub(u64::from(block))];
            let known = places.into_iter().any(|offset| {
                let known = self.stripe_at(offset, slot.uuid);
                ok_or_kept(known, &mut unread) == Some(true)
            });
            if !known {
                unread.map_or(Ok(()), Err)?;
                tracing::error!(path = %self.path.display(), offset = slot.offset,
                    "a stripe lost both of its headers: it begins anew");
                slot.uuid = system_u128();
                renewed.push(slot.uuid);
            }
        }
        content.generation += u64::from(!renewed.is_empty());
        Ok(renewed)
    }

    fn stripe_at(&self, offset: u64, uuid: u128) -> Result<bool, SpanError> {
        let bytes = self.read(offset, 4096)?;
        Ok(Unverified::<StripeHeader>::new(&bytes).verify(uuid).is_ok())
    }

    fn ends(&self, size: u64) -> Result<(End, End), SpanError> {
        if size < MIN_SPAN_BYTES {
            return Err(SpanError::TooSmall {
                path: self.path.to_owned(),
                bytes: size,
            });
        }
        let start = self.last_start(size);
        let len = usize::try_from(size - start).unwrap_or(layout::END_BYTES);
        let sector = usize::try_from(self.device.geometry().sector).unwrap_or(1);
        let first = self.end(0, layout::END_BYTES)?;
        Ok((first, self.end(start, len - len % sector.max(1))?))
    }

    /// What can be read of an end: one bad sector is no reason to refuse a span
    /// whose header is there. Where most marks of others lie it is.
    fn end(&self, offset: u64, len: usize) -> Result<End, SpanError> {
        if let Ok(bytes) = self.read(offset, len) {
            return Ok(End {
                bytes,
                unread: None,
            });
        }
        let mut end = End {
            bytes: AlignedBuf::zeroed(len),
            unread: None,
        };
        for (piece, at) in end
            .bytes
            .chunks_mut(PIECE_BYTES)
            .zip((offset..).step_by(PIECE_BYTES))
        {
            match self.read(at, piece.len()) {
                Ok(read) => piece.copy_from_slice(&read),
                Err(error) if at < first_offset() => return Err(error),
                Err(error) => end.unread = Some(error),
            }
        }
        Ok(end)
    }

    /// Where the last MiB begins, on a bound that can be read at.
    fn last_start(&self, size: u64) -> u64 {
        let start = size.saturating_sub(MIB);
        start.next_multiple_of(4096).min(size - size % 4096)
    }

    fn read(&self, offset: u64, len: usize) -> Result<AlignedBuf, SpanError> {
        read_blocking(&**self.device, offset, len).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: DeviceError) -> SpanError {
        SpanError::Device {
            path: self.path.to_owned(),
            error,
        }
    }

    fn refusal(&self, judgement: &Judgement) -> SpanError {
        let path = self.path.to_owned();
        match judgement {
            Judgement::Foreign(signature) => SpanError::Foreign {
                path,
                what: signature.name,
                offset: signature.offset,
            },
            Judgement::OtherVersion(found) => SpanError::Version {
                path,
                found: *found,
            },
            Judgement::Ours(_) | Judgement::Blank | Judgement::Unknown => {
                SpanError::Unknown { path }
            }
        }
    }
}

#[cfg(test)]
mod tests;
