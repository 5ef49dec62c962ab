//! `config reload|get|set|match|status|verify`, and `value get|match`, which
//! know records and metrics alike.

use super::Control;
use super::metric;
use super::params::Params;
use crate::config::records::{SetError, Update, valueless};
use crate::config::{ConfigError, Findings};
use crate::metrics::Metric;
use crate::mgmt::rpc::{Fault, FaultKind};
use crate::mgmt::settings::{Reloaded, SetFailure, Shown};
use crate::mgmt::verify::Checked;
use serde_json::{Value, json};
use tracing::field::{DisplayValue, display};

/// Names the file of certificates.
const MULTICERT: &str = "proxy.config.ssl.server.multicert.filename";

/// `config.reload`: counted, logged, and answered in full either way.
///
/// # Errors
///
/// `Refused` with every finding; nothing has changed then.
pub(super) fn reload(control: &Control) -> Result<Value, Fault> {
    let outcome = control.settings.reload(control.clock.wall());
    let gauges = control.collector.gauges();
    match outcome {
        Ok(report) => {
            gauges.add(Metric::StrataReloads, 1);
            let now = control.clock.wall().as_secs();
            gauges.set(Metric::ReconfigureTime, now);
            control.publish_generation();
            log_reload(&report);
            Ok(reload_answer(control, &report))
        }
        Err(found) => {
            gauges.add(Metric::StrataReloadFailures, 1);
            for error in &found.errors {
                tracing::error!("reload refused: {error}");
            }
            Err(refused("nothing was changed", &found))
        }
    }
}

fn log_reload(report: &Reloaded) {
    for warning in &report.warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!(
        generation = report.generation,
        now = listed(&report.now),
        at_restart = listed(&report.at_restart),
        "configuration reloaded"
    );
}

/// Names as a log line shows them; nothing if there are none.
fn listed(names: &[String]) -> Option<DisplayValue<String>> {
    (!names.is_empty()).then(|| display(names.join(",")))
}

fn reload_answer(control: &Control, report: &Reloaded) -> Value {
    let file = control.settings.get(MULTICERT);
    let is_of_certificates = |warning: &&ConfigError| {
        let file = file.as_ref().map(|shown| shown.value.as_str());
        file.is_some_and(|file| warning.file.ends_with(file))
    };
    let certificates = report.warnings.iter().filter(is_of_certificates);
    json!({
        "certificates": certificates.map(ToString::to_string).collect::<Vec<_>>(),
        "generation": report.generation,
        "now": report.now,
        "at_restart": report.at_restart,
        "warnings": findings(&report.warnings),
    })
}

/// `config.verify`. Spans that a start would leave out are warned of only: a
/// disk may die under a server, whose files can be reloaded all the same.
///
/// # Errors
///
/// `Refused` with every finding.
pub(super) fn verify(control: &Control) -> Result<Value, Fault> {
    let (loaded, mut found) = control.settings.verify();
    let was_root = control.facts.was_root;
    let spans = control
        .settings
        .verify_spans(&loaded, &found.errors, was_root);
    found.warnings.extend(spans.into_iter().map(left_out));
    if !found.is_usable() {
        return Err(refused("a reload would be refused", &found));
    }
    let checked = Checked::of(&loaded, found.warnings.len());
    Ok(json!({
        "files": checked.files,
        "records": checked.records,
        "rules": checked.rules,
        "spans": checked.spans,
        "text": checked.to_string(),
        "warnings": findings(&found.warnings),
    }))
}

fn left_out(mut span: ConfigError) -> ConfigError {
    span.help = Some("a restart would leave the span out".to_owned());
    span
}

/// `config.set`.
///
/// # Errors
///
/// `NotFound`, `Params` or `Refused`; nothing has changed then.
pub(super) fn set(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let (name, value) = (params.text("name")?, params.text("value")?);
    let persist = params.flag("persist")?;
    let setting = control.settings.set(name, value, persist);
    let setting = setting.map_err(|failure| set_fault(&failure))?;
    control.publish_generation();
    tracing::info!(name, value, persist, "record set");
    Ok(json!({
        "name": name,
        "effect": if setting.at_restart { "restart" } else { "now" },
        "written": persist,
        "overruled_by": setting.overruled,
        "notes": setting.notes(),
    }))
}

fn set_fault(failure: &SetFailure) -> Fault {
    match failure {
        SetFailure::Invalid(SetError::Unknown { .. }) => {
            Fault::new(FaultKind::NotFound, failure.to_string())
        }
        SetFailure::Invalid(SetError::Ats(_) | SetError::Metric(_) | SetError::Value { .. })
        | SetFailure::Control => Fault::new(FaultKind::Params, failure.to_string()),
        SetFailure::Refused(found) => refused(&failure.to_string(), found),
        SetFailure::StateDir | SetFailure::Write(_) => {
            Fault::new(FaultKind::Refused, failure.to_string())
        }
    }
}

/// `config.get`: in the order asked for.
///
/// # Errors
///
/// `NotFound` for the first name that is no record.
pub(super) fn get(control: &Control, names: &[&str]) -> Result<Value, Fault> {
    let rows = names.iter().map(|name| {
        let shown = control.settings.get(name).ok_or_else(|| unknown(name))?;
        Ok(row(&shown))
    });
    Ok(json!({ "values": rows.collect::<Result<Vec<_>, Fault>>()? }))
}

/// `config.match`.
pub(super) fn matching(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let pattern = params.pattern()?;
    let records = control.settings.list(|name| pattern.is_match(name));
    let rows: Vec<Value> = records.iter().map(row).collect();
    Ok(json!({ "values": rows }))
}

/// `config.status`.
pub(super) fn status(control: &Control) -> Value {
    let status = control.settings.status();
    json!({
        "directory": status.dir,
        "generation": status.generation,
        "loaded_at": status.loaded_at.as_secs(),
        "at_restart": status.at_restart,
        "running": status.running,
        "last_errors": findings(&status.last_errors),
    })
}

/// `value.get`: a record's value or a metric's.
///
/// # Errors
///
/// `NotFound` if the name is neither's.
pub(super) fn value(control: &Control, name: &str) -> Result<Value, Fault> {
    if let Some(shown) = control.settings.get(name) {
        return Ok(json!({ "value": shown.value }));
    }
    let value = control.scrape().value(name);
    let value = value.ok_or_else(|| unknown(name))?.to_string();
    Ok(json!({ "value": value }))
}

/// `value.match`: records first, then metrics.
pub(super) fn matching_values(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let pattern = params.pattern()?;
    let records = control.settings.list(|name| pattern.is_match(name));
    let mut rows: Vec<Value> = records.iter().map(row).collect();
    rows.extend(metric::matching(&control.scrape(), &pattern));
    Ok(json!({ "values": rows }))
}

fn unknown(name: &str) -> Fault {
    Fault::new(FaultKind::NotFound, valueless(name))
}

fn row(shown: &Shown) -> Value {
    json!({
        "name": shown.name,
        "value": shown.value,
        "source": shown.origin.word(),
        "update": match shown.update {
            Update::Reload => "reload",
            Update::Restart => "restart",
        },
    })
}

pub(super) fn refused(what: &str, found: &Findings) -> Fault {
    let count = found.errors.len();
    let message = format!("{what}: {count} error{}", if count == 1 { "" } else { "s" });
    Fault::new(FaultKind::Refused, message).with_data(json!({
        "errors": findings(&found.errors),
        "warnings": findings(&found.warnings),
    }))
}

fn findings(errors: &[ConfigError]) -> Vec<Value> {
    let values = errors.iter().map(|error| {
        json!({
            "file": &*error.file,
            "line": error.line,
            "column": error.column,
            "token": error.token,
            "what": error.what,
            "help": error.help,
            "text": error.to_string(),
        })
    });
    values.collect()
}
