//! Filters: may this client use this method by this rule?

use crate::config::remap::{Action, Filter, Source};
use std::net::IpAddr;

/// Who asks, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client<'m> {
    address: IpAddr,
    method: &'m str,
    relayed: bool,
}

impl<'m> Client<'m> {
    /// A client connected from `address` (`::ffff:a.b.c.d` counts as a.b.c.d)
    /// with this method.
    #[must_use]
    pub fn new(address: IpAddr, method: &'m str) -> Self {
        Self {
            address: address.to_canonical(),
            method,
            relayed: false,
        }
    }

    /// The same client, when its request carries Via, Forwarded or
    /// X-Forwarded-For (`relayed`) and asks for what loopback alone may do: it
    /// is PURGE or PUSH, or `much` says so, as of a client that chooses the
    /// origin. A balancer on this machine sends such requests for anyone, so
    /// its address proves nothing: the request must be allowed both as a
    /// loopback client and as one that no loopback rule covers.
    #[must_use]
    pub fn relayed(self, relayed: bool, much: bool) -> Self {
        let asks_much = much || matches!(self.method, "PURGE" | "PUSH");
        Self {
            relayed: relayed && asks_much,
            ..self
        }
    }

    /// The address, never in IPv4-mapped form.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The method, as in the request.
    #[must_use]
    pub const fn method(&self) -> &'m str {
        self.method
    }

    /// Whether `allowed` holds for every way in which the client must be
    /// judged; its argument says whether loopback ranges cover the client.
    pub(super) fn is_allowed(&self, allowed: impl Fn(Loopback) -> bool) -> bool {
        allowed(Loopback::Counts) && (!self.relayed || allowed(Loopback::Ignored))
    }
}

/// Whether a range of loopback addresses covers a client in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loopback {
    /// As any range does.
    Counts,
    /// No: the client's address proves nothing.
    Ignored,
}

/// Whether the filter lets the client pass. Method and address must both
/// match; what does not match gets the opposite of the filter's action, so an
/// `allow` filter refuses everybody else (ATS up to 9, and 10 by default).
#[must_use]
pub fn passes(filter: &Filter, client: &Client<'_>) -> bool {
    client.is_allowed(|loopback| {
        let matches = matches_method(filter, client) && matches_source(filter, client, loopback);
        matches == (filter.action == Action::Allow)
    })
}

fn matches_method(filter: &Filter, client: &Client<'_>) -> bool {
    filter.methods.is_empty() || filter.methods.iter().any(|m| m == client.method)
}

fn matches_source(filter: &Filter, client: &Client<'_>, loopback: Loopback) -> bool {
    let covers = |source: &Source| {
        let ignored = loopback == Loopback::Ignored && source.range.is_loopback();
        let inside = source.range.contains(client.address) && !ignored;
        inside != source.inverted
    };
    filter.sources.is_empty() || filter.sources.iter().any(covers)
}
