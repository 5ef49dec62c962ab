//! Ranges of addresses as operators write them: `10.0.0.1`, `10.0.0.0/8`,
//! `10.0.0.1-10.0.0.9`, `::1`, `fc00::/7`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of one family from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpRange {
    first: IpAddr,
    last: IpAddr,
}

/// Every IPv4 address.
pub const ANY_V4: IpRange = IpRange::v4_block(Ipv4Addr::UNSPECIFIED, 0);
/// Every IPv6 address.
pub const ANY_V6: IpRange = IpRange::v6_block(Ipv6Addr::UNSPECIFIED, 0);
/// 127.0.0.0/8.
pub const LOOPBACK_V4: IpRange = IpRange::v4_block(Ipv4Addr::LOCALHOST, 8);
/// ::1.
pub const LOOPBACK_V6: IpRange = IpRange::v6_block(Ipv6Addr::LOCALHOST, 128);

/// Why a text is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Not an address.
    #[error("\"{0}\" is no IPv4 or IPv6 address")]
    Address(String),
    /// A prefix length that is no number, or too long for the family.
    #[error("prefix length \"{length}\" is no number from 0 to {max}")]
    Prefix {
        /// The text after the `/`.
        length: String,
        /// The family's address length in bits.
        max: u8,
    },
    /// The ends are of two families.
    #[error("{first} and {last} are of two address families")]
    Families {
        /// The lower end as written.
        first: IpAddr,
        /// The upper end as written.
        last: IpAddr,
    },
    /// The ends are in the wrong order.
    #[error("{first} is above {last}")]
    Order {
        /// The lower end as written.
        first: IpAddr,
        /// The upper end as written.
        last: IpAddr,
    },
}

impl IpRange {
    /// The range from `first` to `last`, both included.
    ///
    /// # Errors
    /// [`RangeError::Families`] and [`RangeError::Order`].
    pub fn new(first: IpAddr, last: IpAddr) -> Result<Self, RangeError> {
        if first.is_ipv4() != last.is_ipv4() {
            return Err(RangeError::Families { first, last });
        }
        if first > last {
            return Err(RangeError::Order { first, last });
        }
        Ok(Self { first, last })
    }

    /// Reads an address, `address/prefix-length` or `address-address`; `0/0`
    /// is every IPv4 address. Bits of the address beyond the prefix are
    /// ignored. Both as in ATS.
    ///
    /// # Errors
    /// Any [`RangeError`].
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        if text == "0/0" {
            return Ok(ANY_V4);
        }
        if let Some((address, length)) = text.split_once('/') {
            return Self::of_prefix(parse_address(address)?, length);
        }
        if let Some((first, last)) = text.split_once('-') {
            return Self::new(parse_address(first)?, parse_address(last)?);
        }
        let address = parse_address(text)?;
        Self::new(address, address)
    }

    fn of_prefix(address: IpAddr, length: &str) -> Result<Self, RangeError> {
        match (address, length.parse()) {
            (IpAddr::V4(address), Ok(bits @ 0..=32)) => Ok(Self::v4_block(address, bits)),
            (IpAddr::V6(address), Ok(bits @ 0..=128)) => Ok(Self::v6_block(address, bits)),
            _ => Err(RangeError::Prefix {
                length: length.to_owned(),
                max: if address.is_ipv4() { 32 } else { 128 },
            }),
        }
    }

    /// The IPv4 addresses that begin with these bits, `bits` of them.
    ///
    /// # Panics
    /// If `bits` is above 32: for constants only.
    #[must_use]
    pub const fn v4_block(address: Ipv4Addr, bits: u32) -> Self {
        assert!(bits <= 32, "an IPv4 prefix has at most 32 bits");
        let low = address.to_bits();
        let mask = if bits == 32 { 0 } else { u32::MAX >> bits };
        Self {
            first: IpAddr::V4(Ipv4Addr::from_bits(low & !mask)),
            last: IpAddr::V4(Ipv4Addr::from_bits(low | mask)),
        }
    }

    /// The IPv6 addresses that begin with these bits, `bits` of them.
    ///
    /// # Panics
    /// If `bits` is above 128: for constants only.
    #[must_use]
    pub const fn v6_block(address: Ipv6Addr, bits: u32) -> Self {
        assert!(bits <= 128, "an IPv6 prefix has at most 128 bits");
        let low = address.to_bits();
        let mask = if bits == 128 { 0 } else { u128::MAX >> bits };
        Self {
            first: IpAddr::V6(Ipv6Addr::from_bits(low & !mask)),
            last: IpAddr::V6(Ipv6Addr::from_bits(low | mask)),
        }
    }

    /// The lowest address.
    #[must_use]
    pub const fn first(&self) -> IpAddr {
        self.first
    }

    /// The highest address.
    #[must_use]
    pub const fn last(&self) -> IpAddr {
        self.last
    }

    /// Whether `address` lies in the range. An address of the other family
    /// does not: map `::ffff:a.b.c.d` down before asking.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && self.first <= address && address <= self.last
    }

    /// Whether every address of `other` lies in this range.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.contains(other.first) && self.contains(other.last)
    }

    /// Whether every address in it is a loopback one: 127.0.0.0/8, `::1`, or
    /// the IPv4-mapped form of the former.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        // Loopback blocks are contiguous, so the ends tell.
        self.first.to_canonical().is_loopback() && self.last.to_canonical().is_loopback()
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            self.first.fmt(f)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

fn parse_address(text: &str) -> Result<IpAddr, RangeError> {
    text.parse()
        .map_err(|_| RangeError::Address(text.to_owned()))
}

/// Reads ranges separated by blanks or commas, as records hold them; every
/// wrong one is in the error list.
///
/// # Errors
/// One [`RangeError`] for each word that is no range.
pub fn parse_list(text: &str) -> Result<Vec<IpRange>, Vec<RangeError>> {
    let words = text.split(|c: char| c.is_whitespace() || c == ',');
    let mut ranges = Vec::new();
    let mut errors = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        match IpRange::parse(word) {
            Ok(range) => ranges.push(range),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(ranges)
    } else {
        Err(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn shown(text: &str) -> String {
        IpRange::parse(text).map_or_else(|e| e.to_string(), |r| r.to_string())
    }

    #[test]
    fn the_three_forms_are_read_in_both_families() {
        assert_eq!(shown("10.0.0.1"), "10.0.0.1");
        assert_eq!(shown("10.1.2.3/8"), "10.0.0.0-10.255.255.255");
        assert_eq!(shown("10.0.0.1-10.0.0.9"), "10.0.0.1-10.0.0.9");
        assert_eq!(shown("0.0.0.0/0"), "0.0.0.0-255.255.255.255");
        assert_eq!(shown("0/0"), "0.0.0.0-255.255.255.255");
        assert_eq!(shown("10.0.0.1/32"), "10.0.0.1");
        assert_eq!(shown("::1/128"), "::1");
        assert_eq!(
            shown("fc00::/7"),
            "fc00::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
        );
        assert_eq!(shown("::/0"), "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    }

    #[test]
    fn what_is_no_range_says_why() {
        assert_eq!(shown("10.0.0"), "\"10.0.0\" is no IPv4 or IPv6 address");
        assert_eq!(
            shown("10.0.0.0/33"),
            "prefix length \"33\" is no number from 0 to 32"
        );
        assert_eq!(shown("10.0.0.9-10.0.0.1"), "10.0.0.9 is above 10.0.0.1");
        assert_eq!(
            shown("10.0.0.9-::1"),
            "10.0.0.9 and ::1 are of two address families"
        );
        assert_eq!(shown(""), "\"\" is no IPv4 or IPv6 address");
    }

    #[test]
    fn a_range_holds_its_ends_and_no_other_family() {
        let range = IpRange::parse("10.0.0.1-10.0.0.9").unwrap();
        assert!(range.contains(ip("10.0.0.1")) && range.contains(ip("10.0.0.9")));
        assert!(!range.contains(ip("10.0.0.0")) && !range.contains(ip("10.0.0.10")));
        assert!(!range.contains(ip("::ffff:10.0.0.1")));
    }

    #[test]
    fn only_a_range_wholly_in_loopback_is_loopback() {
        for text in ["127.0.0.1", "127.0.0.0/8", "::1", "::ffff:127.0.0.1"] {
            assert!(IpRange::parse(text).unwrap().is_loopback(), "{text}");
        }
        for text in ["0.0.0.0/0", "127.0.0.0/7", "::/0", "::1-::2"] {
            assert!(!IpRange::parse(text).unwrap().is_loopback(), "{text}");
        }
    }

    #[test]
    fn a_list_gives_all_ranges_or_all_errors() {
        assert_eq!(parse_list("127.0.0.0/8 ::1,10.0.0.1").unwrap().len(), 3);
        assert_eq!(parse_list("  ").unwrap(), []);
        assert_eq!(parse_list("a 10.0.0.1 b").unwrap_err().len(), 2);
    }
}
