//! Totals, and the rows of averages that the tool prints.

use std::cell::Cell;
use strata::base::clock::MonoTime;
use tokio::sync::Notify;

/// The line above the rows.
const HEADER: &str = "  con  new  ops 1byte  lbyte   bytes/per svrs  new  ops    total  time  err";
/// Rows between two headers.
const ROWS_A_HEADER: u32 = 20;

/// What was counted since the start, in one thread's cells.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Clients with an open connection now.
    pub(crate) clients_open: Cell<u64>,
    /// Connections that clients opened.
    pub(crate) clients_new: Cell<u64>,
    /// Requests begun by clients.
    pub(crate) begun: Cell<u64>,
    /// Requests answered in full and right.
    pub(crate) client_ops: Cell<u64>,
    /// Bytes that clients read.
    pub(crate) client_bytes: Cell<u64>,
    /// Nanoseconds to the first byte, summed over requests.
    pub(crate) first_byte_ns: Cell<u64>,
    /// Nanoseconds to the last byte, summed over requests.
    pub(crate) last_byte_ns: Cell<u64>,
    /// Origin connections open now.
    pub(crate) servers_open: Cell<u64>,
    /// Origin connections accepted.
    pub(crate) servers_new: Cell<u64>,
    /// Requests that the origin answered.
    pub(crate) server_ops: Cell<u64>,
    /// Bytes that the origin wrote.
    pub(crate) server_bytes: Cell<u64>,
    /// Requests that failed, and answers that were wrong.
    pub(crate) errors: Cell<u64>,
    /// Raised when the last request is answered.
    pub(crate) finished: Notify,
}

/// Adds `n` to a total.
pub(crate) fn add(cell: &Cell<u64>, n: u64) {
    cell.set(cell.get().wrapping_add(n));
}

impl Totals {
    /// The run in one line.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} client requests, {} origin requests, {} errors",
            self.client_ops.get(),
            self.server_ops.get(),
            self.errors.get()
        )
    }

    /// The totals that the rows show as rates.
    fn rising(&self) -> [u64; RATES] {
        [
            &self.clients_new,
            &self.client_ops,
            &self.client_bytes,
            &self.first_byte_ns,
            &self.last_byte_ns,
            &self.servers_new,
            &self.server_ops,
            &self.server_bytes,
        ]
        .map(Cell::get)
    }
}

const RATES: usize = 8;

/// Averages over the last seconds, older ones counting less.
pub(crate) struct Report {
    average_over: f64,
    before: [u64; RATES],
    before_at: MonoTime,
    rates: [f64; RATES],
    rows: u32,
}

impl Report {
    /// A report whose averages decay over `average_over` seconds.
    pub(crate) fn new(average_over: f64) -> Self {
        Self {
            average_over: average_over.max(0.001),
            before: [0; RATES],
            before_at: MonoTime::default(),
            rates: [0.0; RATES],
            rows: 0,
        }
    }

    /// The next row, with the header above it when it is due.
    pub(crate) fn rows(&mut self, totals: &Totals, now: MonoTime) -> Vec<String> {
        self.decay(totals.rising(), now);
        let header = self.rows.is_multiple_of(ROWS_A_HEADER);
        self.rows += 1;
        let mut lines = Vec::new();
        if header {
            lines.push(HEADER.to_owned());
        }
        lines.push(self.row(totals, now));
        lines
    }

    fn decay(&mut self, totals: [u64; RATES], now: MonoTime) {
        let seconds = now.since(self.before_at).as_secs_f64().max(0.001);
        let weight = (seconds / self.average_over).min(1.0);
        for (index, total) in totals.into_iter().enumerate() {
            let risen = total.wrapping_sub(self.before[index]);
            let rate = risen as f64 / seconds;
            self.rates[index] += (rate - self.rates[index]) * weight;
        }
        self.before = totals;
        self.before_at = now;
    }

    fn row(&self, totals: &Totals, now: MonoTime) -> String {
        let [
            new,
            ops,
            bytes,
            first,
            last,
            servers_new,
            server_ops,
            server_bytes,
        ] = self.rates;
        let clients = totals.clients_open.get();
        let ms_an_op = |nanos: f64| if ops > 0.0 { nanos / ops / 1e6 } else { 0.0 };
        format!(
            "{clients:5} {new:4.0} {ops:4.0} {:5.1} {:6.1} {bytes:7.0}/{:3.0} {:4} {servers_new:4.0} \
             {server_ops:4.0} {:8.0} {:5.0} {:4}",
            ms_an_op(first),
            ms_an_op(last),
            bytes / clients.max(1) as f64,
            totals.servers_open.get(),
            bytes + server_bytes,
            now.as_nanos() as f64 / 1e9,
            totals.errors.get(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_average_the_rates_and_repeat_the_header() {
        let totals = Totals::default();
        let mut report = Report::new(5.0);
        let mut headers = 0;
        for second in 1..=40 {
            add(&totals.client_ops, 100);
            let now = MonoTime::from_nanos(second * 1_000_000_000);
            let lines = report.rows(&totals, now);
            headers += lines.len() - 1;
        }
        assert_eq!(headers, 2);
        assert!((report.rates[1] - 100.0).abs() < 0.1, "{}", report.rates[1]);
    }
}
