//! Who may use the proxy, and which addresses a client may send it to.

use super::filter::{Client, Loopback};
use super::range_map::RangeMap;
use super::reserved::{self, Reserved};
use crate::config::ip_allow::{Direction, IpAllowFile, IpAllowRule};
use crate::config::ip_range::{IpRange, RangeError, parse_list};
use crate::config::place::Place;
use crate::config::remap::Action;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The clients that may choose the origin themselves
/// (`proxy.config.http.forward_allow`), or are told of the cache
/// (`proxy.config.http.cache_status_allow`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardPolicy {
    networks: Vec<IpRange>,
}

impl ForwardPolicy {
    /// Reads the record: ranges separated by blanks or commas; none lets
    /// nobody.
    ///
    /// # Errors
    /// One error for each word that is no range.
    pub fn parse(record: &str) -> Result<Self, Vec<RangeError>> {
        parse_list(record).map(|networks| Self { networks })
    }

    /// Lets no client choose.
    #[must_use]
    pub const fn nobody() -> Self {
        Self {
            networks: Vec::new(),
        }
    }

    /// Whether the client may. Ask for a client made with
    /// `.relayed(…, true)`: behind a balancer on this machine its loopback
    /// address proves nothing.
    #[must_use]
    pub fn allows(&self, client: &Client<'_>) -> bool {
        client.is_allowed(|loopback| {
            let counts = |n: &&IpRange| loopback == Loopback::Counts || !n.is_loopback();
            let mut networks = self.networks.iter().filter(counts);
            networks.any(|network| network.contains(client.address()))
        })
    }
}

/// The rules of one ip_allow file, ready to be asked.
#[derive(Clone, Debug)]
pub struct IpAllow {
    rules: Vec<IpAllowRule>,
    /// `apply: in`, by client address.
    inbound: RangeMap,
    /// The same without ranges of loopback addresses.
    inbound_no_loopback: RangeMap,
    /// `apply: out`, by origin address.
    outbound: RangeMap,
    /// The same, but only ranges written to open a reserved block.
    opening: RangeMap,
}

impl Default for IpAllow {
    /// The rules that hold without a file.
    fn default() -> Self {
        Self::new(&IpAllowFile::built_in())
    }
}

/// Why a client may not send us to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// We listen there ourselves; no rule opens it.
    OwnListener(SocketAddr),
    /// An `apply: out` rule denies it.
    Rule {
        /// The address.
        address: IpAddr,
        /// Where the rule stands.
        place: Option<Place>,
    },
    /// Reserved, and no `apply: out` rule for that block allows it.
    Reserved {
        /// The address.
        address: IpAddr,
        /// What it is reserved for.
        why: Reserved,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnListener(address) => write!(f, "{address} is our own listener"),
            Self::Rule { address, place } => {
                write!(f, "{address} is denied by an apply: out rule")?;
                match place {
                    Some(place) => write!(f, " at {place}"),
                    None => Ok(()),
                }
            }
            Self::Reserved { address, why } => {
                write!(f, "{address} is {why} that no apply: out rule names")
            }
        }
    }
}

impl IpAllow {
    /// Indexes the rules.
    #[must_use]
    pub fn new(file: &IpAllowFile) -> Self {
        let ranges = |direction: Direction, wanted: &dyn Fn(&IpRange) -> bool| {
            let rules = file.rules.iter().zip(0..);
            let side = rules.filter(|(rule, _)| rule.direction == direction);
            let all = side.flat_map(|(rule, at)| rule.ranges.iter().map(move |r| (*r, at)));
            RangeMap::new(all.filter(|(range, _)| wanted(range)))
        };
        Self {
            inbound: ranges(Direction::In, &|_| true),
            inbound_no_loopback: ranges(Direction::In, &|range| !range.is_loopback()),
            outbound: ranges(Direction::Out, &|_| true),
            opening: ranges(Direction::Out, &reserved::is_within_one_block),
            rules: file.rules.clone(),
        }
    }

    /// Whether any `apply: in` rule covers the address. ATS closes the
    /// connection of a client whom none covers as it is accepted; here each of
    /// its requests is answered 403, so that the refusal is told, counted and
    /// logged.
    #[must_use]
    pub fn covers(&self, client: IpAddr) -> bool {
        self.inbound.get(client.to_canonical()).is_some()
    }

    /// Whether the first `apply: in` rule that covers the client lets its
    /// method pass (else: 403). A client whom no rule covers may do nothing.
    #[must_use]
    pub fn allows_client(&self, client: &Client<'_>) -> bool {
        client.is_allowed(|loopback| {
            let ranges = match loopback {
                Loopback::Counts => &self.inbound,
                Loopback::Ignored => &self.inbound_no_loopback,
            };
            let rule = self.rule(ranges.get(client.address()));
            rule.is_some_and(|rule| rule.passes(client.method()))
        })
    }

    /// Why a request of `method` may not go to `target`, the resolved address
    /// of an origin that the client chose; none if it may. Targets that the
    /// operator wrote in a rule are not to be asked about.
    ///
    /// `own` holds every address we listen on; a wildcard one stands for
    /// loopback too, for each further address of this machine the caller adds
    /// an entry. Of the `apply: out` rules the first that covers the address
    /// holds; no rule allows. A reserved address is refused unless a rule for
    /// ranges within its block, as 127.0.0.0/8 or ::1, allows it: a rule for
    /// everything does not.
    #[must_use]
    pub fn refuses_address(
        &self,
        target: SocketAddr,
        method: &str,
        own: &[SocketAddr],
    ) -> Option<Refusal> {
        if own.iter().any(|own| is_own(own, target)) {
            return Some(Refusal::OwnListener(target));
        }
        let address = target.ip();
        // An IPv4-mapped address is connected to as IPv4: rules for either
        // form may deny it.
        let forms = [address, address.to_canonical()];
        let denying = |form: &IpAddr| {
            let rule = self.rule(self.outbound.get(*form))?;
            (!rule.passes(method)).then_some(rule)
        };
        if let Some(rule) = forms.iter().find_map(denying) {
            let place = rule.place.clone();
            return Some(Refusal::Rule { address, place });
        }
        let why = reserved::reserved(address)?;
        let opens = |rule: &IpAllowRule| rule.action == Action::Allow && rule.passes(method);
        let opened = self.rule(self.opening.get(address)).is_some_and(opens);
        (!opened).then_some(Refusal::Reserved { address, why })
    }

    fn rule(&self, at: Option<usize>) -> Option<&IpAllowRule> {
        self.rules.get(at?)
    }
}

/// Whether a connection to `target` would reach the listener.
fn is_own(listener: &SocketAddr, target: SocketAddr) -> bool {
    let (own, asked) = (listener.ip().to_canonical(), target.ip().to_canonical());
    let is_here = asked.is_loopback() || asked.is_unspecified();
    listener.port() == target.port() && (own == asked || (own.is_unspecified() && is_here))
}
