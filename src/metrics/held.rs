//! A gauge that counts what is there now.

use super::{Cells, Metric};
use std::sync::Arc;

/// One more in a gauge, for as long as this lives.
#[derive(Debug)]
pub struct Held {
    cells: Arc<Cells>,
    gauge: Metric,
}

impl Held {
    /// Adds one to `gauge`.
    #[must_use]
    pub fn new(cells: &Arc<Cells>, gauge: Metric) -> Self {
        cells.add(gauge, 1);
        let cells = Arc::clone(cells);
        Self { cells, gauge }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.cells.sub(self.gauge, 1);
    }
}
