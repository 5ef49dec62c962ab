//! Whether clients are served as configured, and if not, what is missing.

use crate::cache::{
    Cache, Readiness as CacheReadiness, SpanOutcome, SpanReport, SpanState, SpanStatus,
};
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
    let status = cache.status();
    let refused = status.spans.into_iter().filter_map(why_unused);
    [nothing_stored(status.ram.objects)]
        .into_iter()
        .chain(refused)
        .collect()
}

/// What holds while no span is usable and RAM holds that many objects, which
/// came there while one was.
fn nothing_stored(ram_objects: u64) -> String {
    let nothing = "no configured span is usable; nothing is stored";
    match ram_objects {
        0 => format!("{nothing}, and every request goes to its origin"),
        1 => format!("{nothing}, and 1 object is left, in the RAM cache"),
        more => format!("{nothing}, and {more} objects are left, in the RAM cache"),
    }
}

fn why_unused(span: SpanStatus) -> Option<String> {
    let path = span.path.display();
    match span.state {
        SpanState::Refused(why) => Some(why),
        SpanState::Offline { errors } => Some(format!(
            "{path} is offline (I/O errors: {errors}): traffic_ctl storage online {path}"
        )),
        SpanState::Loading | SpanState::Online | SpanState::Suspect => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_span_it_is_said_what_is_left() {
        assert!(nothing_stored(0).ends_with("every request goes to its origin"));
        assert!(nothing_stored(1).ends_with("1 object is left, in the RAM cache"));
        assert!(nothing_stored(7).ends_with("7 objects are left, in the RAM cache"));
    }
}
