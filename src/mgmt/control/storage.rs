//! `storage list|offline|online|init`.

use super::Control;
use super::params::Params;
use crate::cache::{Cache, SpanCommandError, SpanState, SpanStatus};
use crate::mgmt::rpc::{Fault, FaultKind};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// Every configured span.
///
/// # Errors
///
/// `Internal` if the count of its entries was broken off.
pub(super) async fn list(control: &Control) -> Result<Value, Fault> {
    let status = blocking(control, Cache::status).await?;
    let spans: Vec<Value> = status.spans.iter().map(row).collect();
    Ok(json!({
        "spans": spans,
        "ram": {
            "bytes_total": status.ram.bytes_total,
            "bytes_used": status.ram.bytes_used,
            "objects": status.ram.objects,
        },
    }))
}

fn row(span: &SpanStatus) -> Value {
    let (state, reason) = match &span.state {
        SpanState::Online => ("online", None),
        SpanState::Offline { .. } => ("offline", None),
        SpanState::Refused(why) => ("refused", Some(why)),
    };
    json!({
        "path": span.path,
        "id": span.id,
        "uuid": span.uuid.map(|uuid| format!("{uuid:032x}")),
        "tier": span.tier.map_or_else(|| "-".to_owned(), |tier| tier.to_string()),
        "state": state,
        "reason": reason,
        "bytes_used": span.bytes_used,
        "bytes_total": span.bytes_total,
        "entries_used": span.entries_used,
        "entries_total": span.entries_total,
        "errors": span.errors,
        "suspect": span.suspect,
    })
}

/// Takes a span out of use.
///
/// # Errors
///
/// `NotFound` for a path that is not configured, else `Refused`.
pub(super) async fn offline(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let path = path(control, params)?;
    done(control.cache.offline(&path).await)
}

/// Takes a span into use again.
///
/// # Errors
///
/// `NotFound` for a path that is not configured, else `Refused`.
pub(super) async fn online(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let path = path(control, params)?;
    done(blocking(control, move |cache| cache.online(&path)).await?)
}

/// Makes a span anew; what it held is lost. The answer names the next command.
///
/// # Errors
///
/// `NotFound` for a path that is not configured, else `Refused` with what lies
/// on it.
pub(super) async fn init(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let (path, force) = (path(control, params)?, params.flag("force")?);
    done(blocking(control, move |cache| cache.init(&path, force)).await?)?;
    let named = params.text("path")?;
    Ok(json!({ "next": format!("traffic_ctl storage online {named}") }))
}

/// Runs what waits for devices or reads every directory on a thread where
/// that holds up nobody.
async fn blocking<T: Send + 'static>(
    control: &Control,
    work: impl FnOnce(&Cache) -> T + Send + 'static,
) -> Result<T, Fault> {
    let cache = Arc::clone(&control.cache);
    let done = tokio::task::spawn_blocking(move || work(&cache)).await;
    done.map_err(|error| Fault::new(FaultKind::Internal, error.to_string()))
}

/// A span by its path; a relative one is relative to the configuration, as it
/// is in storage.config.
fn path(control: &Control, params: Params<'_>) -> Result<PathBuf, Fault> {
    Ok(control.settings.path(params.text("path")?))
}

fn done(outcome: Result<(), SpanCommandError>) -> Result<Value, Fault> {
    match outcome {
        Ok(()) => Ok(json!({})),
        Err(error @ SpanCommandError::Unknown { .. }) => {
            Err(Fault::new(FaultKind::NotFound, error.to_string()))
        }
        Err(error) => Err(Fault::new(FaultKind::Refused, error.to_string())),
    }
}
