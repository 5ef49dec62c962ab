//! Whether clients are served as configured, and if not, what is missing.

use crate::cache::{Cache, Readiness as CacheReadiness, SpanOutcome, SpanReport, SpanState};
use crate::mgmt::admin::Readiness;
use crate::mgmt::life::Life;
use std::path::PathBuf;

/// Judges by the phase and by the cache.
pub(super) fn judge(life: &Life, cache: &Cache) -> Readiness {
    let reasons = match cache.readiness() {
        CacheReadiness::Ready => Vec::new(),
        CacheReadiness::Loading => vec![still_read(&cache.loading())],
        CacheReadiness::NoSpan => without_span(cache),
    };
    Readiness {
        phase: life.phase(),
        reasons,
    }
}

fn still_read(spans: &[PathBuf]) -> String {
    let paths: Vec<_> = spans.iter().map(|path| path.to_string_lossy()).collect();
    format!("stripes are still being read: {}", paths.join(", "))
}

fn without_span(cache: &Cache) -> Vec<String> {
    let nothing = "no configured span is usable; nothing is cached".to_owned();
    let states = cache.status().spans.into_iter().map(|span| span.state);
    [nothing]
        .into_iter()
        .chain(states.filter_map(refusal))
        .collect()
}

fn refusal(state: SpanState) -> Option<String> {
    match state {
        SpanState::Refused(why) => Some(why),
        SpanState::Loading | SpanState::Online | SpanState::Suspect | SpanState::Offline { .. } => {
            None
        }
    }
}

/// Tells of every span, loudly of those that are left out.
pub(super) fn log_spans(reports: &[SpanReport]) {
    for report in reports {
        let path = report.path.display();
        match &report.outcome {
            SpanOutcome::Used {
                tier,
                bytes,
                formatted,
            } => tracing::info!(span = %path, %tier, bytes, formatted, "span in use"),
            SpanOutcome::Refused(why) => {
                tracing::error!(span = %path, "span left out, nothing was written to it: {why}");
            }
        }
    }
}

/// The spans that were refused, by what was refused.
pub(super) fn refused(reports: &[SpanReport]) -> Vec<String> {
    let outcomes = reports.iter().map(|report| &report.outcome);
    outcomes
        .filter_map(|outcome| match outcome {
            SpanOutcome::Refused(why) => Some(why.clone()),
            SpanOutcome::Used { .. } => None,
        })
        .collect()
}
