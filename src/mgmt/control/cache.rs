//! `cache purge|clear`.

use super::Control;
use crate::cache::CacheKey;
use crate::http::target::RequestUrl;
use crate::mgmt::rpc::{Fault, FaultKind};
use crate::proxy::key::key_of;
use serde_json::{Value, json};

/// Purges what is stored for client URLs, durably, and shows their keys.
///
/// # Errors
///
/// `Params` for what is no URL, `NotFound` for a URL that no rule takes; then
/// nothing is purged. `Refused` if a purge could not be made durable.
pub(super) async fn purge(control: &Control, urls: &[&str]) -> Result<Value, Fault> {
    let keys = urls.iter().map(|url| Ok((*url, key(control, url)?)));
    let keys: Vec<(&str, CacheKey)> = keys.collect::<Result<_, Fault>>()?;
    let mut purged = Vec::new();
    for (url, key) in keys {
        let found = control.cache.purge(&key).await.map_err(|error| {
            let what = format!("{url} is gone from memory, but {error}");
            Fault::new(FaultKind::Refused, what)
        })?;
        let text = String::from_utf8_lossy(key.text());
        tracing::info!(url, key = %text, found, "purged");
        purged.push(json!({
            "url": url,
            "key": text,
            "hash": format!("{:032x}", key.hash()),
            "found": found,
        }));
    }
    Ok(json!({ "purged": purged }))
}

/// Clears one volume or all, durably.
///
/// # Errors
///
/// `NotFound` for a volume that there is not, `Refused` if it could not be
/// made durable.
pub(super) async fn clear(control: &Control, volume: Option<u64>) -> Result<Value, Fault> {
    let volume = volume
        .map(|number| known_volume(control, number))
        .transpose()?;
    control.cache.clear(volume).await.map_err(|error| {
        let what = format!("all is gone until the server restarts, but {error}");
        Fault::new(FaultKind::Refused, what)
    })?;
    tracing::warn!(?volume, "cache cleared");
    Ok(json!({ "volume": volume }))
}

pub(super) fn known_volume(control: &Control, number: u64) -> Result<u32, Fault> {
    let known = control.cache.volumes();
    let found = known.iter().find(|volume| u64::from(**volume) == number);
    found.copied().ok_or_else(|| {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        let known = known.join(", ");
        let what = format!("{number}: there is no such volume; there is {known}");
        Fault::new(FaultKind::NotFound, what)
    })
}

/// The key of a client URL.
pub(super) fn key(control: &Control, text: &str) -> Result<CacheKey, Fault> {
    let url = RequestUrl::parse(text)
        .map_err(|error| Fault::new(FaultKind::Params, format!("{text}: {error}")))?;
    key_of(&control.snapshot.load(), &url).ok_or_else(|| {
        let what = format!("{text}: no rule of remap.config maps this URL");
        Fault::new(FaultKind::NotFound, what)
    })
}
