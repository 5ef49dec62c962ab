//! `server status|drain`.

use super::Control;
use crate::metrics::Metric;
use crate::mgmt::rpc::{Fault, FaultKind};
use serde_json::{Value, json};

/// What the server is doing, and what it lacks.
pub(super) fn status(control: &Control) -> Value {
    let readiness = (control.readiness)();
    let uptime = control.clock.wall().since(control.facts.started);
    let ports = control.facts.ports.iter().map(ToString::to_string);
    json!({
        "phase": readiness.phase.word(),
        "ready": readiness.is_ready(),
        "reasons": readiness.reasons,
        "version": env!("CARGO_PKG_VERSION"),
        "process": std::process::id(),
        "uptime_seconds": uptime.as_secs(),
        "ports": ports.collect::<Vec<_>>(),
        "admin": control.facts.admin.map(|address| address.to_string()),
        "generation": control.collector.registry().get(Metric::StrataGeneration),
    })
}

/// Stops accepting; requests that are begun are finished, and there is no way
/// back but a restart.
///
/// # Errors
///
/// `Refused` while the server starts or stops.
pub(super) fn drain(control: &Control) -> Result<Value, Fault> {
    let done = control.life.drain();
    let phase = control.life.phase().word();
    if !done {
        let what = format!("the server is {phase}");
        return Err(Fault::new(FaultKind::Refused, what));
    }
    control.collector.gauges().set(Metric::Draining, 1);
    Ok(json!({ "phase": phase }))
}
