//! The one table of metrics: what a row is, and how a row is found.

use super::rows::{METRICS, Metric, ROWS};

/// How a metric moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only ever rises.
    Counter,
    /// Rises and falls.
    Gauge,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct MetricSpec {
    /// The dotted name; Prometheus sees it with underscores.
    pub name: &'static str,
    /// How it moves.
    pub kind: MetricKind,
    /// What it counts, in one sentence.
    pub help: &'static str,
}

/// Writes [`Metric`] and its tables from the rows.
macro_rules! metrics {
    ($( $(#[doc = $help:literal])+ $variant:ident = $name:literal, $kind:ident; )+) => {
        /// A metric: a row of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric {
            $( $(#[doc = $help])+ $variant, )+
        }

        /// Every metric, sorted by name, in the order of [`Metric`].
        pub const METRICS: &[$crate::metrics::MetricSpec] = &[
            $( $crate::metrics::MetricSpec {
                name: $name,
                kind: $crate::metrics::MetricKind::$kind,
                help: concat!($($help),+).trim_ascii(),
            }, )+
        ];

        /// Every metric by its row.
        pub(super) const ROWS: &[Metric] = &[$( Metric::$variant, )+];
    };
}

pub(super) use metrics;

impl Metric {
    /// The row's place in [`METRICS`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The row itself.
    #[must_use]
    pub const fn spec(self) -> &'static MetricSpec {
        &METRICS[self.index()]
    }

    /// The metric with a name, dotted or as [`exported`].
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let dotted = METRICS.binary_search_by(|spec| spec.name.cmp(name)).ok();
        let row = dotted.or_else(|| METRICS.iter().position(|spec| exported(spec.name) == name))?;
        ROWS.get(row).copied()
    }
}

/// A dotted name as Prometheus sees it.
#[must_use]
pub fn exported(dotted: &str) -> String {
    dotted.replace(['.', '-'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_name_without_repeats() {
        for pair in METRICS.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} is out of order",
                pair[1].name
            );
        }
    }

    #[test]
    fn every_row_is_found_by_both_its_names() {
        for metric in ROWS {
            let name = metric.spec().name;
            assert_eq!(Metric::by_name(name), Some(*metric));
            assert_eq!(Metric::by_name(&exported(name)), Some(*metric));
        }
    }
}
