//! Gauges that are sampled when the metrics are read.

use crate::base::clock::WallTime;
use crate::cache::{Cache, Readiness};
use crate::metrics::{Cells, Metric};
use crate::proxy::Snapshot;
use crate::proxy::tls::TlsServer;

/// Bytes of the process in memory, as the kernel counts them.
pub(super) fn set_memory(cells: &Cells) {
    if let Some(bytes) = resident_bytes() {
        cells.set(Metric::MemoryRss, bytes);
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// How many certificates are served, how many are faulty, and which ends first.
pub(super) fn set_certificates(cells: &Cells, tls: &TlsServer) {
    let summary = tls.summary();
    cells.set(Metric::SslCertificates, summary.served);
    cells.set(Metric::SslCertificatesFaulty, summary.faulty);
    cells.set(Metric::SslCertificatesExpiry, summary.first_expiry);
}

/// When the first of the certificates that origins are shown ends.
pub(super) fn set_origin_certificates(cells: &Cells, snapshot: &Snapshot) {
    let all = snapshot.origin_tls();
    let first = all.filter_map(|tls| tls.first_expiry()).min();
    cells.set(Metric::SslOriginCertificatesExpiry, first.unwrap_or(0));
}

/// When every stripe was judged: the first reading that finds it so.
pub(super) fn set_cache_ready_time(cells: &Cells, cache: &Cache, now: WallTime) {
    let known = cells.get(Metric::CacheReadyTime) != 0;
    if !known && cache.readiness() != Readiness::Loading {
        cells.set(Metric::CacheReadyTime, now.as_secs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_more_than_a_megabyte() {
        assert!(resident_bytes().unwrap() > 1 << 20);
    }
}
