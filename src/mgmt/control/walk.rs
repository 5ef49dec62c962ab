//! `cache list` and `storage scan`: all that is stored, part by part.

use super::cache::known_volume;
use super::params::Params;
use super::{Control, storage};
use crate::cache::{Listed, ObjectKind, Tier, WalkAt};
use crate::mgmt::rpc::{Fault, FaultKind};
use serde_json::{Value, json};
use std::time::Duration;

/// Bytes a second that a walk reads where it is not said: a share of a disk's,
/// so that clients are served meanwhile.
const RATE: u64 = 32 << 20;

/// A part of the objects whose key begins with a prefix.
///
/// # Errors
///
/// `Params` for a `from` that no part gave, `NotFound` for a volume that there
/// is not.
pub(super) async fn list(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let prefix = params.text("prefix")?;
    let volume = params.number("volume")?;
    let volume = volume
        .map(|number| known_volume(control, number))
        .transpose()?;
    let from = from(params)?;
    let pause = Pause::of(params)?;
    let part = control.cache.list(prefix.as_bytes(), volume, from).await;
    pause.after(part.bytes).await;
    let objects: Vec<Value> = part.objects.iter().map(row).collect();
    Ok(json!({ "objects": objects, "next": next(part.next) }))
}

/// A tier by the word of storage.config.
pub(super) const fn tier_word(tier: Tier) -> &'static str {
    match tier {
        Tier::Ram => "ram",
        Tier::Fast => "fast",
        Tier::Capacity => "capacity",
    }
}

fn row(object: &Listed) -> Value {
    json!({
        "key": String::from_utf8_lossy(&object.key),
        "tier": tier_word(object.tier),
        "volume": object.volume,
        "bytes": object.body_len,
        "marker": object.kind == ObjectKind::Marker,
        "suspect": object.suspect,
    })
}

/// Verifies a part of a span, or of all, and drops what is damaged.
///
/// # Errors
///
/// `NotFound` for a name that is no span's, `Params` for a `from` that no part
/// gave.
pub(super) async fn scan(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let named = params.some_text("span")?;
    let span = named.map(|_| storage::path(control, params)).transpose()?;
    let from = from(params)?;
    let pause = Pause::of(params)?;
    let part = control.cache.scan(span.as_deref(), from).await;
    pause.after(part.bytes).await;
    if part.damaged > 0 {
        let (damaged, unread) = (part.damaged, part.unread);
        tracing::warn!(damaged, unread, "a scan dropped damaged fragments");
    }
    Ok(json!({
        "next": next(part.next),
        "done": part.done,
        "of": part.of,
        "bytes": part.bytes,
        "whole": part.whole,
        "damaged": part.damaged,
        "unread": part.unread,
    }))
}

fn from(params: Params<'_>) -> Result<Option<WalkAt>, Fault> {
    let from = params.some_text("from")?.map(str::parse).transpose();
    from.map_err(|what: String| Fault::new(FaultKind::Params, what))
}

fn next(at: Option<WalkAt>) -> Option<String> {
    at.map(|at| at.to_string())
}

/// What keeps a walk to its rate.
struct Pause {
    bytes_a_second: u64,
}

impl Pause {
    fn of(params: Params<'_>) -> Result<Self, Fault> {
        let bytes_a_second = params.number("rate")?.unwrap_or(RATE).max(1);
        Ok(Self { bytes_a_second })
    }

    /// Waits as long as reading so much may take; a part is small, so that no
    /// caller waits for its answer in vain.
    async fn after(&self, bytes: u64) {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_a_second);
        let pause = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        tokio::time::sleep(pause.min(Duration::from_secs(30))).await;
    }
}
