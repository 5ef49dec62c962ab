//! docs/METRICS.md, written from the tables.

use super::derived::DERIVED;
use super::rows::METRICS;
use super::table::MetricKind;
use super::volume::VOLUME_METRICS;
use std::fmt::Write;

const HEAD: &str = "\
# Metrics

Written from the tables in `src/metrics/` by `UPDATE_DOCS=1 cargo test`; not edited by hand.

`/metrics` of the admin listener spells them with `_` for every `.`, and `/_stats` has them as JSON.
`traffic_line -r NAME`, `traffic_line -m REGEX` and `traffic_ctl metric get|match|zero` know both spellings.
`strata_hit_ratio{tier=\"ram|ssd|hdd\"}` has that spelling only: `ramhit`, `ssdhit` and `hddhit` by 100.

";

/// The whole page.
#[must_use]
pub fn markdown() -> String {
    let mut page = String::from(HEAD);
    let counted = METRICS.iter().map(|row| (row.name, row.kind, row.help));
    table(&mut page, "Counted", counted);
    page.push('\n');
    let derived = DERIVED.iter().map(|row| (row.name, row.kind, row.help));
    table(&mut page, "Computed when read", derived);
    page.push('\n');
    let names = VOLUME_METRICS.map(|row| format!("proxy.process.cache.volume_N.{}", row.name));
    let rows = names.iter().zip(&VOLUME_METRICS);
    let rows = rows.map(|(name, row)| (name.as_str(), row.kind, row.help));
    table(&mut page, "Of each volume N, where there are volumes", rows);
    page
}

fn table<'a>(
    page: &mut String,
    title: &str,
    rows: impl Iterator<Item = (&'a str, MetricKind, &'a str)>,
) {
    page.push_str(&format!(
        "## {title}\n\n| name | kind | meaning |\n|---|---|---|\n"
    ));
    for (name, kind, help) in rows {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        writeln!(page, "| {name} | {kind} | {help} |").expect("a String takes all writes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn metrics_md_is_what_the_tables_say() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/METRICS.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, markdown()).unwrap();
        }
        let page = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/METRICS.md is stale: run UPDATE_DOCS=1 cargo test"
        );
    }
}
