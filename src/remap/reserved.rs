//! Addresses that no client may have us connect to unless a rule says so.

use crate::config::ip_range::{IpRange, LOOPBACK_V4, LOOPBACK_V6};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is refused without a rule that opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reserved {
    /// 127.0.0.0/8, ::1: this machine.
    Loopback,
    /// 0.0.0.0/8 and ::, which Linux takes for this machine.
    Unspecified,
    /// 169.254.0.0/16 and fe80::/10: this network, and cloud metadata.
    LinkLocal,
    /// 224.0.0.0/4, ff00::/8, and IPv4 broadcast: no one host.
    Multicast,
    /// Metadata services of clouds outside the link-local ranges.
    Metadata,
    /// An IPv6 address that stands for a reserved IPv4 address: mapped,
    /// compatible, translated (RFC 6052: these prefixes must not hold such
    /// addresses) or 6to4 (RFC 3056 2: likewise).
    Embedded,
}

impl fmt::Display for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::Unspecified => "an unspecified address",
            Self::LinkLocal => "a link-local address",
            Self::Multicast => "a multicast or broadcast address",
            Self::Metadata => "the address of a cloud's metadata service",
            Self::Embedded => "an IPv6 form of a reserved IPv4 address",
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u32) -> IpRange {
    IpRange::v4_block(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(head: [u16; 4], tail: [u16; 4], bits: u32) -> IpRange {
    let [a, b, c, d] = head;
    let [e, f, g, h] = tail;
    IpRange::v6_block(Ipv6Addr::new(a, b, c, d, e, f, g, h), bits)
}

/// Reserved blocks by address.
const BLOCKS: [(IpRange, Reserved); 11] = [
    (v4(0, 0, 0, 0, 8), Reserved::Unspecified),
    (LOOPBACK_V4, Reserved::Loopback),
    (v4(169, 254, 0, 0, 16), Reserved::LinkLocal),
    (v4(224, 0, 0, 0, 4), Reserved::Multicast),
    (v4(255, 255, 255, 255, 32), Reserved::Multicast),
    (v4(100, 100, 100, 200, 32), Reserved::Metadata),
    (v6([0; 4], [0; 4], 128), Reserved::Unspecified),
    (LOOPBACK_V6, Reserved::Loopback),
    (v6([0xfe80, 0, 0, 0], [0; 4], 10), Reserved::LinkLocal),
    (v6([0xff00, 0, 0, 0], [0; 4], 8), Reserved::Multicast),
    (
        v6([0xfd00, 0xec2, 0, 0], [0, 0, 0, 0x254], 128),
        Reserved::Metadata,
    ),
];

/// Blocks whose addresses hold an IPv4 address in their last 32 bits: mapped,
/// compatible (RFC 4291 2.5.5), translated (RFC 7915), NAT64 (RFC 6052, 8215).
const TAIL_BLOCKS: [IpRange; 5] = [
    v6([0; 4], [0, 0xffff, 0, 0], 96),
    v6([0; 4], [0; 4], 96),
    v6([0; 4], [0xffff, 0, 0, 0], 96),
    v6([0x64, 0xff9b, 0, 0], [0; 4], 96),
    v6([0x64, 0xff9b, 1, 0], [0; 4], 48),
];

/// 6to4 (RFC 3056): the IPv4 address is in bits 16 to 47.
const SIX_TO_FOUR: IpRange = v6([0x2002, 0, 0, 0], [0; 4], 16);

/// Why the address is reserved; none if it is not.
pub(super) fn reserved(address: IpAddr) -> Option<Reserved> {
    let block = BLOCKS.iter().find(|(range, _)| range.contains(address));
    if let Some((_, why)) = block {
        return Some(*why);
    }
    let inner = embedded(address)?;
    reserved(inner.into()).map(|_| Reserved::Embedded)
}

/// The IPv4 address that an IPv6 address stands for.
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else {
        return None;
    };
    let [.., a, b, c, d] = v6.octets();
    if TAIL_BLOCKS.iter().any(|block| block.contains(address)) {
        return Some(Ipv4Addr::new(a, b, c, d));
    }
    let [_, _, a, b, c, d, ..] = v6.octets();
    SIX_TO_FOUR
        .contains(address)
        .then(|| Ipv4Addr::new(a, b, c, d))
}

/// Whether a range names nothing but one reserved block, so that a rule for
/// it was written to open that block; `0.0.0.0/0` was not.
pub(super) fn is_within_one_block(range: &IpRange) -> bool {
    let plain = BLOCKS.iter().map(|(block, _)| block);
    let mut all = plain.chain(&TAIL_BLOCKS).chain([&SIX_TO_FOUR]);
    all.any(|block| block.covers(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Reserved> {
        reserved(text.parse().unwrap())
    }

    #[test]
    fn reserved_blocks_are_known_to_their_ends() {
        for (text, why) in [
            ("0.0.0.0", Reserved::Unspecified),
            ("0.255.255.255", Reserved::Unspecified),
            ("127.0.0.1", Reserved::Loopback),
            ("127.255.255.255", Reserved::Loopback),
            ("169.254.169.254", Reserved::LinkLocal),
            ("224.0.0.1", Reserved::Multicast),
            ("239.255.255.255", Reserved::Multicast),
            ("255.255.255.255", Reserved::Multicast),
            ("100.100.100.200", Reserved::Metadata),
            ("::", Reserved::Unspecified),
            ("::1", Reserved::Loopback),
            ("fe80::1", Reserved::LinkLocal),
            ("febf:ffff::1", Reserved::LinkLocal),
            ("ff02::1", Reserved::Multicast),
            ("fd00:ec2::254", Reserved::Metadata),
        ] {
            assert_eq!(of(text), Some(why), "{text}");
        }
    }

    #[test]
    fn ipv6_forms_of_reserved_ipv4_addresses_are_reserved() {
        for text in [
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0.0.0.0",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
        ] {
            assert_eq!(of(text), Some(Reserved::Embedded), "{text}");
        }
    }

    #[test]
    fn other_addresses_are_free() {
        for text in [
            "1.0.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "10.0.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "223.255.255.255",
            "2001:db8::1",
            "fc00::1",
            "fec0::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_range_within_one_block_was_written_to_open_it() {
        let within = |text: &str| is_within_one_block(&IpRange::parse(text).unwrap());
        for text in [
            "127.0.0.0/8",
            "127.0.0.1",
            "::1",
            "::ffff:127.0.0.0/104",
            "fe80::/10",
        ] {
            assert!(within(text), "{text}");
        }
        for text in ["0/0", "::/0", "126.0.0.0-127.255.255.255", "10.0.0.0/8"] {
            assert!(!within(text), "{text}");
        }
    }
}
