//! Addresses to the first of many ranges that covers them.

use crate::config::ip_range::IpRange;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Ranges in order of precedence, cut into intervals that do not overlap, so
/// that a lookup is a binary search.
#[derive(Clone, Debug, Default)]
pub(super) struct RangeMap {
    v4: Intervals,
    v6: Intervals,
}

/// Where each interval begins and which value holds from there on.
type Intervals = Vec<(u128, Option<usize>)>;

impl RangeMap {
    /// Maps each range to its value; where ranges overlap, the first holds.
    pub(super) fn new(ranges: impl IntoIterator<Item = (IpRange, usize)>) -> Self {
        let all: Vec<_> = ranges.into_iter().collect();
        let of_family = |v4: bool| {
            let family = all
                .iter()
                .filter(move |(range, _)| range.first().is_ipv4() == v4);
            intervals(family)
        };
        Self {
            v4: of_family(true),
            v6: of_family(false),
        }
    }

    /// The value of the first range that covers the address.
    pub(super) fn get(&self, address: IpAddr) -> Option<usize> {
        let intervals = if address.is_ipv4() {
            &self.v4
        } else {
            &self.v6
        };
        let at = number(address);
        let after = intervals.partition_point(|(start, _)| *start <= at);
        intervals.get(after.checked_sub(1)?)?.1
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// The ranges that begin, and that have ended, at an address.
#[derive(Default)]
struct Turn {
    begin: Vec<usize>,
    end: Vec<usize>,
}

fn intervals<'r>(ranges: impl Iterator<Item = &'r (IpRange, usize)>) -> Intervals {
    let mut turns: BTreeMap<u128, Turn> = BTreeMap::new();
    let mut values = Vec::new();
    for (order, (range, value)) in ranges.enumerate() {
        values.push(*value);
        turns
            .entry(number(range.first()))
            .or_default()
            .begin
            .push(order);
        // A range up to the last address of IPv6 never ends.
        if let Some(after) = number(range.last()).checked_add(1) {
            turns.entry(after).or_default().end.push(order);
        }
    }
    let mut open = BTreeSet::new();
    let mut intervals = Vec::with_capacity(turns.len());
    for (start, turn) in turns {
        for order in turn.end {
            open.remove(&order);
        }
        open.extend(turn.begin);
        let first = open.first().and_then(|order| values.get(*order));
        intervals.push((start, first.copied()));
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn range(text: &str) -> IpRange {
        IpRange::parse(text).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_range_holds_where_several_do_and_families_stay_apart() {
        let ranges = ["10.0.0.5", "10.0.0.0/8", "0/0", "::/0"].map(range);
        let map = RangeMap::new(ranges.into_iter().zip(0..));
        for (address, value) in [
            ("10.0.0.5", 0),
            ("10.0.0.6", 1),
            ("10.255.255.255", 1),
            ("11.0.0.0", 2),
            ("255.255.255.255", 2),
            ("::", 3),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 3),
        ] {
            assert_eq!(map.get(ip(address)), Some(value), "{address}");
        }
        assert_eq!(RangeMap::default().get(ip("10.0.0.1")), None);
    }

    proptest! {
        #[test]
        fn it_answers_like_a_scan(
            ends in prop::collection::vec((0_u8..20, 0_u8..20, any::<bool>()), 0..12),
            asked in 0_u8..22,
            v4 in any::<bool>(),
        ) {
            let address = |n: u8, v4: bool| -> IpAddr {
                if v4 { Ipv4Addr::new(0, 0, 0, n).into() } else { Ipv6Addr::from_bits(n.into()).into() }
            };
            let range = |(a, b, v4): (u8, u8, bool)| {
                IpRange::new(address(a.min(b), v4), address(a.max(b), v4)).unwrap()
            };
            let ranges: Vec<_> = ends.into_iter().map(range).collect();
            let asked = address(asked, v4);
            let scanned = ranges.iter().position(|range| range.contains(asked));
            let map = RangeMap::new(ranges.into_iter().zip(0..));
            prop_assert_eq!(map.get(asked), scanned);
        }
    }
}
