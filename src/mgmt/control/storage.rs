//! `storage list|offline|online|init`.

use super::Control;
use super::params::Params;
use crate::cache::{Cache, SpanCommandError, SpanName, SpanState, SpanStatus, StripeStatus};
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
    let reason = match &span.state {
        SpanState::Refused(why) => Some(why),
        SpanState::Loading | SpanState::Online | SpanState::Suspect | SpanState::Offline { .. } => {
            None
        }
    };
    let stripes: Vec<Value> = span.stripes.iter().map(stripe_row).collect();
    json!({
        "path": span.path,
        "id": span.id,
        "uuid": span.uuid.map(|uuid| format!("{uuid:032x}")),
        "tier": span.tier.map_or_else(|| "-".to_owned(), |tier| tier.to_string()),
        "state": span.state.word(),
        "reason": reason,
        "bytes_used": span.bytes_used,
        "bytes_total": span.bytes_total,
        "entries_used": span.entries_used,
        "entries_total": span.entries_total,
        "pages_unread": span.pages_unread,
        "errors": span.errors,
        "checksum_errors": span.checksum_errors,
        "stripes": stripes,
    })
}

fn stripe_row(stripe: &StripeStatus) -> Value {
    json!({
        "uuid": format!("{:032x}", stripe.uuid),
        "volume": stripe.volume,
        "state": stripe.state.word(),
        "bytes_used": stripe.bytes_used,
        "bytes_total": stripe.bytes_total,
        "entries_used": stripe.entries_used,
        "entries_total": stripe.entries_total,
        "pages_unread": stripe.pages_unread,
    })
}

/// Takes spans out of use: all that can be.
///
/// # Errors
///
/// `NotFound`, and nothing is changed, for a name that is no span's; else
/// `Refused` with each span that is left as it was.
pub(super) async fn offline(control: &Control, names: &[&str]) -> Result<Value, Fault> {
    let paths = paths(control, names)?;
    let mut refused = Vec::new();
    for path in &paths {
        refused.extend(control.cache.offline(path).await.err());
    }
    no_refusals(refused)?;
    Ok(json!({}))
}

/// Takes spans into use again: all that can be. The answer says of each whether
/// it is still read.
///
/// # Errors
///
/// As of [`offline`].
pub(super) async fn online(control: &Control, names: &[&str]) -> Result<Value, Fault> {
    let paths = paths(control, names)?;
    let (mut rows, mut refused) = (Vec::new(), Vec::new());
    for (path, name) in paths.into_iter().zip(names) {
        match blocking(control, move |cache| cache.online(&path)).await? {
            Ok(state) => rows.push(json!({ "span": name, "state": state.word() })),
            Err(error) => refused.push(error),
        }
    }
    no_refusals(refused)?;
    Ok(json!({ "spans": rows }))
}

/// Every one of these spans, so that a misspelt name changes nothing.
fn paths(control: &Control, names: &[&str]) -> Result<Vec<PathBuf>, Fault> {
    names.iter().map(|name| path_of(control, name)).collect()
}

/// The fault that tells of all of them.
fn no_refusals(refused: Vec<SpanCommandError>) -> Result<(), Fault> {
    let mut faults = refused.into_iter().map(fault);
    let Some(mut first) = faults.next() else {
        return Ok(());
    };
    for next in faults {
        first.message += &format!("; {}", next.message);
    }
    Err(first)
}

/// Makes a span anew; what it held is lost. The answer names the next command.
///
/// # Errors
///
/// `NotFound` for a name that is no span's, else `Refused` with what lies on
/// it.
pub(super) async fn init(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let (path, force) = (path(control, params)?, params.flag("force")?);
    let made = blocking(control, move |cache| cache.init(&path, force)).await?;
    made.map_err(fault)?;
    let named = params.text("span")?;
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

/// A span by its path, its id or its UUID; a relative path is relative to the
/// configuration, as it is in storage.config.
pub(super) fn path(control: &Control, params: Params<'_>) -> Result<PathBuf, Fault> {
    path_of(control, params.text("span")?)
}

fn path_of(control: &Control, text: &str) -> Result<PathBuf, Fault> {
    let name = SpanName {
        text: text.to_owned(),
        path: control.settings.path(text),
    };
    control.cache.span_named(&name).map_err(fault)
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err wants it")]
fn fault(error: SpanCommandError) -> Fault {
    let kind = match error {
        SpanCommandError::Unknown { .. } | SpanCommandError::Ambiguous { .. } => {
            FaultKind::NotFound
        }
        SpanCommandError::InUse { .. }
        | SpanCommandError::Unchanged { .. }
        | SpanCommandError::Refused(_)
        | SpanCommandError::State(_) => FaultKind::Refused,
    };
    Fault::new(kind, error.to_string())
}
