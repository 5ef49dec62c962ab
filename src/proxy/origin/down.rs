//! Addresses that could not be connected to a while ago, and in which order a
//! server's addresses are tried in view of that.

use super::OriginOptions;
use crate::base::clock::MonoTime;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Addresses that are remembered; one more, and all are forgotten.
const DOWN_MAX: usize = 4096;

/// The addresses that count as down, and until when.
#[derive(Debug, Default)]
pub(super) struct Down {
    until: HashMap<SocketAddr, MonoTime>,
}

impl Down {
    /// Whether the address counts as down.
    pub(super) fn has(&self, address: SocketAddr, now: MonoTime) -> bool {
        self.until.get(&address).is_some_and(|until| now < *until)
    }

    /// Notes that no connection to the address came about; while it is down
    /// already, that changes nothing. True when it is down from now on.
    pub(super) fn failed(&mut self, address: SocketAddr, now: MonoTime, time: Duration) -> bool {
        if time.is_zero() || self.has(address, now) {
            return false;
        }
        if self.until.len() >= DOWN_MAX {
            self.until.clear();
        }
        self.until.insert(address, now.plus(time));
        true
    }

    /// Notes that one did.
    pub(super) fn answered(&mut self, address: SocketAddr) {
        self.until.remove(&address);
    }

    /// Forgets those that are not down any more.
    pub(super) fn sweep(&mut self, now: MonoTime) {
        self.until.retain(|_, until| now < *until);
    }
}

/// The addresses to connect to, one after the other: those that are not down,
/// each at least once and up to `connect_attempts_rr_retries` times in a row,
/// `connect_attempts_max_retries` times beyond the first in all; then those that
/// are down, once. Where all are down, fewer attempts are made
/// (`connect_attempts_max_retries_down_server`).
pub(super) fn attempts(
    addresses: &[IpAddr],
    is_down: impl Fn(IpAddr) -> bool,
    options: &OriginOptions,
) -> Vec<IpAddr> {
    let (down, up): (Vec<_>, Vec<_>) = addresses.iter().copied().partition(|ip| is_down(*ip));
    if up.is_empty() {
        return spread(&down, options.down_retries + 1, 1);
    }
    let mut order = spread(&up, options.connect_retries + 1, options.same_tries);
    order.extend(down);
    order
}

/// So many attempts, but one at each address at least: up to `in_a_row` at the
/// first ones, as many as there are too many; then all in turn.
fn spread(addresses: &[IpAddr], attempts: usize, in_a_row: usize) -> Vec<IpAddr> {
    let mut spare = attempts.saturating_sub(addresses.len());
    let mut order = Vec::with_capacity(attempts);
    for ip in addresses {
        let more = spare.min(in_a_row.saturating_sub(1));
        spare -= more;
        order.extend(std::iter::repeat_n(*ip, 1 + more));
    }
    order.extend(addresses.iter().cycle().take(spare));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::records::Records;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
    const C: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 3));

    #[test]
    fn attempts_are_spread_over_the_addresses_and_what_is_down_comes_last() {
        type Row<'a> = (&'a [IpAddr], &'a [IpAddr], (i64, i64, i64), &'a [IpAddr]);
        let rows: [Row<'_>; 10] = [
            (&[A], &[], (3, 1, 1), &[A, A, A, A]),
            (&[A], &[A], (3, 1, 1), &[A, A]),
            (&[A], &[A], (3, 1, 0), &[A]),
            (&[A, B], &[], (3, 1, 1), &[A, B, A, B]),
            (&[A, B], &[], (3, 3, 1), &[A, A, A, B]),
            (&[A, B], &[], (3, 2, 1), &[A, A, B, B]),
            (&[A, B, C], &[], (0, 3, 1), &[A, B, C]),
            (&[A, B, C], &[], (3, 3, 1), &[A, A, B, C]),
            (&[A, B, C], &[A], (1, 1, 1), &[B, C, A]),
            (&[A, B], &[A, B], (9, 1, 0), &[A, B]),
        ];
        for (addresses, down, (retries, same, down_retries), order) in rows {
            let records = Records {
                http_connect_attempts_max_retries: retries,
                http_connect_attempts_rr_retries: same,
                http_connect_attempts_max_retries_down_server: down_retries,
                ..Records::default()
            };
            let options = OriginOptions::from_records(&records);
            let planned = attempts(addresses, |ip| down.contains(&ip), &options);
            assert_eq!(
                planned, order,
                "{addresses:?}, {down:?} down, {retries} {same}"
            );
        }
    }

    #[test]
    fn an_address_is_down_for_its_time_which_further_failures_do_not_extend() {
        let address = SocketAddr::new(A, 80);
        let (at, time) = (MonoTime::from_nanos, Duration::from_nanos(10));
        let mut down = Down::default();
        assert!(down.failed(address, at(0), time));
        assert!(!down.failed(address, at(9), time));
        assert!(down.has(address, at(9)) && !down.has(address, at(10)));
        assert!(!down.has(SocketAddr::new(A, 81), at(0)));
        assert!(down.failed(address, at(10), time));
        down.answered(address);
        assert!(!down.has(address, at(11)));
        assert!(!down.failed(address, at(11), Duration::ZERO));
        down.failed(address, at(12), time);
        down.sweep(at(22));
        assert!(down.until.is_empty());
    }
}
