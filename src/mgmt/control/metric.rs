//! `metric get|match|zero`.

use crate::metrics::{METRICS, Metric, Registry, Scrape, Shown, exported};
use crate::mgmt::rpc::{Fault, FaultKind};
use regex::Regex;
use serde_json::{Value, json};
use std::borrow::Cow;

/// A metric as `metric get` lists it.
fn row(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

fn unknown(name: &str) -> Fault {
    Fault::new(FaultKind::NotFound, format!("no metric is called {name}"))
}

/// The named metrics, in the order asked for.
///
/// # Errors
///
/// `NotFound` for the first name that no metric has.
pub(super) fn get(scrape: &Scrape, names: &[&str]) -> Result<Value, Fault> {
    let rows = names.iter().map(|name| {
        let value = scrape.value(name).ok_or_else(|| unknown(name))?;
        Ok(row(name, &value.to_string()))
    });
    let rows: Vec<Value> = rows.collect::<Result<_, Fault>>()?;
    Ok(json!({ "values": rows }))
}

/// The metrics whose name matches, dotted or as `/metrics` spells it, each
/// under the name that did.
pub(super) fn matching(scrape: &Scrape, pattern: &Regex) -> Vec<Value> {
    let rows = scrape.all().chain(scrape.labelled());
    rows.filter_map(|shown| {
        let name = matching_name(&shown, pattern)?;
        Some(row(&name, &shown.value.to_string()))
    })
    .collect()
}

fn matching_name<'a>(shown: &Shown<'a>, pattern: &Regex) -> Option<Cow<'a, str>> {
    if pattern.is_match(shown.name) {
        return Some(shown.name.into());
    }
    let exported = exported(shown.name);
    pattern.is_match(&exported).then(|| exported.into())
}

/// Zeroes the named counters, or all of them if none is named.
///
/// # Errors
///
/// `NotFound` for the first name that no counted metric has; then nothing is
/// zeroed.
pub(super) fn zero(registry: &Registry, names: &[&str]) -> Result<Value, Fault> {
    let named = names
        .iter()
        .map(|name| Metric::by_name(name).ok_or_else(|| unknown(name)));
    let mut metrics: Vec<Metric> = named.collect::<Result<_, Fault>>()?;
    if names.is_empty() {
        metrics = all_metrics();
    }
    for metric in metrics {
        registry.zero(metric);
    }
    Ok(json!({}))
}

fn all_metrics() -> Vec<Metric> {
    let names = METRICS.iter();
    names
        .filter_map(|spec| Metric::by_name(spec.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::MonoTime;
    use crate::metrics::{Collector, export};
    use std::sync::Arc;

    fn counted() -> (Arc<Registry>, Collector) {
        let registry = Registry::new();
        let cells = registry.cells();
        cells.add(Metric::CacheReadSuccess, 3);
        cells.add(Metric::CurrentClientConnections, 1);
        let collector = Collector::new(Arc::clone(&registry), MonoTime::default());
        (registry, collector)
    }

    fn scrape(collector: &Collector) -> Scrape {
        collector.scrape(MonoTime::default())
    }

    #[test]
    fn get_keeps_the_order_asked_for_and_fails_whole() {
        let (_, collector) = counted();
        let names = ["ramhit", "proxy.process.cache.read.success"];
        let values = get(&scrape(&collector), &names).unwrap();
        assert_eq!(values["values"][1], row(names[1], "3"));
        let fault = get(&scrape(&collector), &["ramhit", "nope"]).unwrap_err();
        assert!(fault.message.contains("nope"));
    }

    #[test]
    fn zeroing_all_leaves_gauges() {
        let (registry, collector) = counted();
        zero(&registry, &[]).unwrap();
        let read = |metric| scrape(&collector).sum(metric);
        assert_eq!(read(Metric::CacheReadSuccess), 0);
        assert_eq!(read(Metric::CurrentClientConnections), 1);
    }

    #[test]
    fn one_unknown_name_zeroes_nothing() {
        let (registry, collector) = counted();
        let names = ["proxy.process.cache.read.success", "nope"];
        assert!(zero(&registry, &names).is_err());
        assert_eq!(scrape(&collector).sum(Metric::CacheReadSuccess), 3);
    }

    #[test]
    fn match_finds_counted_and_derived_metrics() {
        let (_, collector) = counted();
        let pattern = Regex::new("hit$|read.success$").unwrap();
        let rows = matching(&scrape(&collector), &pattern);
        let names: Vec<_> = rows
            .iter()
            .map(|row| row["name"].as_str().unwrap())
            .collect();
        assert!(names.contains(&"ssdhit"), "{names:?}");
        assert!(names.contains(&"proxy.process.cache.ssd.read.success"));
    }

    fn found(scrape: &Scrape, pattern: &str) -> Vec<Value> {
        matching(scrape, &Regex::new(pattern).unwrap())
    }

    #[test]
    fn every_series_of_the_prometheus_page_is_got_and_matched_by_its_name() {
        let (_, collector) = counted();
        let scrape = scrape(&collector);
        let page = export::prometheus(&scrape);
        let series = page.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = series
            .filter_map(|line| Some(line.rsplit_once(' ')?.0))
            .collect();
        assert!(names.contains(&"ramhit") && names.contains(&"strata_config_generation"));
        let values = get(&scrape, &names).unwrap();
        assert_eq!(values["values"].as_array().unwrap().len(), names.len());
        for name in names {
            let rows = found(&scrape, &format!("^{}$", regex::escape(name)));
            assert_eq!(rows.len(), 1, "{name}: {rows:?}");
            assert_eq!(rows[0]["name"], name);
        }
    }

    #[test]
    fn a_pattern_that_both_names_match_finds_a_metric_once_and_dotted() {
        let (_, collector) = counted();
        let rows = found(&scrape(&collector), "cache.read.success$");
        assert_eq!(rows, [row("proxy.process.cache.read.success", "3")]);
    }

    #[test]
    fn counters_are_zeroed_by_their_prometheus_names() {
        let (registry, collector) = counted();
        zero(&registry, &["proxy_process_cache_read_success"]).unwrap();
        assert_eq!(scrape(&collector).sum(Metric::CacheReadSuccess), 0);
    }
}
