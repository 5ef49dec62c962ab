//! `storage plan`: what a restart would keep of what is stored.

use super::Control;
use super::config::refused;
use super::params::Params;
use crate::cache::plan::{Holding, SpanPlan, StripeFate, StripePlan};
use crate::mgmt::rpc::{Fault, FaultKind};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a plan waits for directories that are still being read after a
/// start: half as long as `traffic_ctl` waits for an answer.
const LOAD_WAIT: Duration = Duration::from_secs(30);

/// What a start with the files as they are now would keep and drop; `storage`
/// and `volumes` are texts in place of theirs.
///
/// # Errors
///
/// `Refused` with every finding in the files, `Internal` if it was broken off.
pub(super) async fn plan(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let (storage, volumes) = (params.some_text("storage")?, params.some_text("volumes")?);
    let planned = control.settings.planned(storage, volumes);
    let (loaded, plan) = planned.map_err(|found| refused("nothing can be planned", &found))?;
    control.cache.loaded_within(LOAD_WAIT).await;
    let done = tokio::task::spawn_blocking(move || plan(&loaded)).await;
    let spans = done.map_err(|error| Fault::new(FaultKind::Internal, error.to_string()))?;
    Ok(plan_answer(&spans))
}

/// A plan as `storage plan` answers.
#[must_use]
pub fn plan_answer(spans: &[SpanPlan]) -> Value {
    let sums = spans.iter().map(SpanPlan::sums);
    let (kept, dropped): (Vec<Holding>, Vec<Holding>) = sums.unzip();
    json!({
        "spans": spans.iter().map(span).collect::<Vec<_>>(),
        "kept": holding(kept.into_iter().sum()),
        "dropped": holding(dropped.into_iter().sum()),
    })
}

fn span(span: &SpanPlan) -> Value {
    let (kept, dropped) = span.sums();
    json!({
        "path": span.path,
        "refused": span.refused,
        "gone": span.is_gone,
        "stripes": span.stripes.iter().map(stripe).collect::<Vec<_>>(),
        "kept": holding(kept),
        "dropped": holding(dropped),
    })
}

fn stripe(stripe: &StripePlan) -> Value {
    let (fate, from) = match stripe.fate {
        StripeFate::Kept => ("kept", None),
        StripeFate::HandedOver { from } => ("handed over", Some(from)),
        StripeFate::Dropped => ("dropped", None),
        StripeFate::New => ("new", None),
    };
    json!({
        "volume": stripe.volume,
        "bytes_total": stripe.length,
        "fate": fate,
        "from": from,
        "objects": stripe.holding.objects,
        "bytes": stripe.holding.bytes,
        "partial": stripe.holding.is_partial,
        "suspect": stripe.holding.is_suspect,
    })
}

fn holding(holding: Holding) -> Value {
    json!({
        "objects": holding.objects,
        "bytes": holding.bytes,
        "partial": holding.is_partial,
        "suspect": holding.is_suspect,
    })
}
