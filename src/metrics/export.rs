//! What a scraper reads: Prometheus text, and ATS's stats_over_http JSON.

use super::collect::{Scrape, Shown, Value};
use super::derived::{HIT_RATIO, HIT_RATIO_HELP, TIER_SERIES};
use super::table::MetricKind;
use metrics::{Key, KeyName, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use std::collections::BTreeMap;

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

/// The text exposition format, version 0.0.4, families sorted by name.
///
/// ATS's dotted names are spelled as its own exporter spells them: whatever is
/// not a letter, digit, `_` or `:` becomes `_`.
#[must_use]
pub fn prometheus(scrape: &Scrape) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    for shown in scrape.all() {
        record(&recorder, &shown);
    }
    record_tiers(&recorder, scrape);
    sorted(&recorder.handle().render())
}

fn record(recorder: &PrometheusRecorder, shown: &Shown<'_>) {
    let name = KeyName::from(shown.name.to_owned());
    let key = Key::from_name(shown.name.to_owned());
    match (shown.kind, shown.value) {
        (MetricKind::Counter, Value::Int(n)) => {
            recorder.describe_counter(name, None, shown.help.into());
            recorder.register_counter(&key, &METADATA).absolute(n);
        }
        (_, value) => {
            recorder.describe_gauge(name, None, shown.help.into());
            recorder.register_gauge(&key, &METADATA).set(value.as_f64());
        }
    }
}

fn record_tiers(recorder: &PrometheusRecorder, scrape: &Scrape) {
    let name = KeyName::from_const_str(HIT_RATIO);
    recorder.describe_gauge(name, None, HIT_RATIO_HELP.into());
    for series in TIER_SERIES {
        let key = Key::from_parts(HIT_RATIO, vec![Label::new("tier", series.tier)]);
        let gauge = recorder.register_gauge(&key, &METADATA);
        gauge.set(series.ratio(scrape));
    }
}

/// The exporter renders from a hash map; sorted families make two scrapes
/// comparable.
fn sorted(text: &str) -> String {
    let mut families: Vec<Vec<&str>> = text.split("\n\n").map(sorted_family).collect();
    families.sort_unstable_by_key(|lines| lines.first().copied());
    let lines = families.into_iter().flatten();
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn sorted_family(family: &str) -> Vec<&str> {
    let lines = family.lines().filter(|line| !line.is_empty());
    let (mut head, mut values): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with('#'));
    values.sort_unstable();
    head.append(&mut values);
    head
}

/// The JSON of `/_stats`: every value a string, as stats_over_http writes it.
#[must_use]
pub fn stats_json(scrape: &Scrape, version: &str) -> String {
    let mut global: BTreeMap<&str, String> = scrape
        .all()
        .map(|shown| (shown.name, shown.value.to_string()))
        .collect();
    global.insert("server", version.to_owned());
    serde_json::json!({ "global": global }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::MonoTime;
    use crate::metrics::{Collector, Metric, Registry};

    fn scrape() -> Scrape {
        let registry = Registry::new();
        let cells = registry.cells();
        let collector = Collector::new(registry, MonoTime::default());
        cells.add(Metric::CacheReadSuccess, 4);
        cells.add(Metric::CacheRamReadSuccess, 3);
        cells.add(Metric::CacheSsdReadSuccess, 1);
        collector.scrape(MonoTime::from_nanos(1_000_000_000))
    }

    #[test]
    fn prometheus_text_has_names_help_types_and_labels() {
        let text = prometheus(&scrape());
        for line in [
            "# TYPE proxy_process_cache_ram_read_success counter",
            "proxy_process_cache_ram_read_success 3",
            "proxy_process_cache_ssd_read_success 1",
            "proxy_process_cache_disk_read_success 0",
            "proxy_process_cache_read_success 4",
            "proxy_process_http_200_responses 0",
            "# TYPE ramhit gauge",
            "ramhit 75",
            "ssdhit 25",
            "hddhit 0",
            "strata_hit_ratio{tier=\"ram\"} 0.75",
            "strata_hit_ratio{tier=\"hdd\"} 0",
            "# HELP proxy_process_cache_read_success Successful cache reads: the sum of the ram, ssd and disk reads.",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn every_metric_is_exported_once_and_two_scrapes_have_one_order() {
        let scrape = scrape();
        let text = prometheus(&scrape);
        assert_eq!(text, prometheus(&scrape));
        let types = text.lines().filter(|line| line.starts_with("# TYPE "));
        assert_eq!(types.count(), scrape.all().count() + 1);
    }

    #[test]
    fn stats_json_has_strings_under_global() {
        let json: serde_json::Value =
            serde_json::from_str(&stats_json(&scrape(), "1.2.3")).unwrap();
        let global = json.get("global").unwrap();
        assert_eq!(global["proxy.process.cache.read.success"], "4");
        assert_eq!(global["server"], "1.2.3");
        assert_eq!(global["proxy.node.cache_hit_ratio"], "0.000000");
    }
}
