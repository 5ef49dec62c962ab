//! What our member of Via says of a transaction, in ATS's letters.
//!
//! `[uScMsSfWpSeN:t cCMp sS]`: each lower-case letter names a slot, what
//! follows is its value, a space where there is nothing to say. Tools of ATS
//! (traffic_via, log parsers) read it, so no letter is new: a hit on any
//! device is `H`, one in RAM `R`.

use super::cache_status::{CacheStatus, Forwarded};
use super::client::RequestHead;
use super::outcome::Outcome;
use super::routed::Routed;
use crate::http::cache_control::RequestDirectives;
use http::header::COOKIE;
use http::{StatusCode, Version};
use std::fmt::{Display, Formatter, Result};
use std::net::IpAddr;

/// What is known of a transaction when Via is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// What it will end in if all goes well.
    pub(super) outcome: Outcome,
    /// How the cache came to it.
    pub(super) status: CacheStatus,
    /// The status that the client is sent; none yet in a request's Via.
    pub(super) answered: Option<StatusCode>,
}

/// The comment's detail, as much of it as `level` asks for
/// (`http.insert_response_via_str`, `http.insert_request_via_str`): from 2 on
/// the slots of the cache, from 3 on all, from 4 on the client's protocols too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail<'a> {
    level: i64,
    told: Told,
    client: &'a Routed,
}

impl<'a> Detail<'a> {
    pub(super) const fn new(level: i64, client: &'a Routed, told: Told) -> Self {
        Self {
            level,
            told,
            client,
        }
    }
}

impl Display for Detail<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        if self.level < 2 {
            return Ok(());
        }
        let told = &self.told;
        let (cache, server, fill) = (told.cache(), told.server(), told.fill());
        if self.level == 2 {
            return write!(out, " [c{cache}s{server}f{fill}]");
        }
        let client = client(&self.client.head);
        let (proxy, error) = (told.proxy(), told.error());
        write!(out, " [u{client}c{cache}s{server}f{fill}p{proxy}e{error}")?;
        let (tunnel, result, reach) = (told.tunnel(), told.result(client), told.reach());
        write!(out, ":t{tunnel}cC{result}p s{reach}]")?;
        if self.level > 3 {
            let version = version(self.client.head.version);
            let network = network(self.client.peer.ip());
            write!(out, " [http/{version} tcp {network}]")?;
        }
        Ok(())
    }
}

const fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        _ => "1.1",
    }
}

const fn network(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "ipv4",
        IpAddr::V6(_) => "ipv6",
    }
}

/// Slot `u`: the request, by what bears most on the cache.
fn client(head: &RequestHead) -> char {
    if RequestDirectives::of(&head.headers).no_cache {
        'N'
    } else if head.is_conditional() {
        'I'
    } else if head.headers.contains_key(COOKIE) {
        'C'
    } else {
        'S'
    }
}

const ERRORS: [(Outcome, char); 3] = [
    (Outcome::MissReadError, 'R'),
    (Outcome::StaleOriginFailed, 'C'),
    (Outcome::StaleOriginError, 'S'),
];

const TUNNELS: [(Outcome, char); 4] = [
    (Outcome::MissNoStore, 'F'),
    (Outcome::MissRange, 'F'),
    (Outcome::MissMethod, 'M'),
    (Outcome::MissCacheOff, 'O'),
];

fn letter(table: &[(Outcome, char)], outcome: Outcome) -> Option<char> {
    let row = table.iter().find(|(known, _)| *known == outcome)?;
    Some(row.1)
}

impl Told {
    /// A request that goes to the origin.
    pub(super) fn asking(outcome: Outcome, why: Forwarded) -> Self {
        let status = CacheStatus {
            forwarded: Some(why),
            ..CacheStatus::default()
        };
        Self {
            outcome,
            status,
            answered: None,
        }
    }

    /// Slot `c`: what the lookup found.
    const fn cache(&self) -> char {
        match (self.outcome, self.status.forwarded) {
            (Outcome::HitRam, _) => 'R',
            (Outcome::HitWhileWriting, _) => 'W',
            (Outcome::HitRevalidated | Outcome::StaleWhileRevalidate, _)
            | (Outcome::StaleOriginFailed | Outcome::StaleOriginError, _)
            | (Outcome::StaleAccepted, _)
            | (_, Some(Forwarded::Stale)) => 'S',
            (_, None) => 'H',
            (Outcome::MissNoStore, _) | (_, Some(Forwarded::Bypass | Forwarded::Method)) => ' ',
            (_, Some(Forwarded::Request)) => 'A',
            (
                _,
                Some(
                    Forwarded::UriMiss | Forwarded::VaryMiss | Forwarded::Miss | Forwarded::Partial,
                ),
            ) => 'M',
        }
    }

    /// Whether the origin was asked by this very transaction, and what it did.
    fn origin(&self) -> Asked {
        let failures = [Outcome::StaleOriginFailed, Outcome::StaleOriginError];
        if self.answered.is_none() {
            Asked::Nothing
        } else if failures.contains(&self.outcome) {
            Asked::Failed
        } else if self.outcome == Outcome::HitRevalidated && self.status.forwarded.is_some() {
            Asked::Validated
        } else if self.status.forwarded.is_none() || self.status.collapsed {
            Asked::Nothing
        } else {
            Asked::Served
        }
    }

    /// Slot `s`: what the origin answered.
    fn server(&self) -> char {
        match self.origin() {
            Asked::Nothing => ' ',
            Asked::Served => 'S',
            Asked::Validated => 'N',
            Asked::Failed => 'E',
        }
    }

    /// Slot `f`: what became of it in the cache.
    fn fill(&self) -> char {
        match (self.origin(), self.cache()) {
            (Asked::Validated, _) => 'U',
            (Asked::Served, 'S' | 'A') if self.status.stored => 'U',
            (Asked::Served, _) if self.status.stored => 'W',
            _ => ' ',
        }
    }

    /// Slot `p`: what we did beyond handing on what is stored.
    fn proxy(&self) -> char {
        match self.origin() {
            Asked::Validated => 'R',
            Asked::Served => 'S',
            _ if self.answered == Some(StatusCode::NOT_MODIFIED) => 'N',
            Asked::Nothing | Asked::Failed => ' ',
        }
    }

    /// Slot `e`: what went wrong on the way.
    fn error(&self) -> char {
        letter(&ERRORS, self.outcome).unwrap_or('N')
    }

    /// Slot `t`: why the request went past the cache.
    fn tunnel(&self) -> char {
        letter(&TUNNELS, self.outcome).unwrap_or(' ')
    }

    /// Second letter of slot `c` after the colon: how the lookup ended.
    const fn result(&self, client: char) -> char {
        match (self.outcome, self.cache()) {
            (Outcome::MissCacheOff, _) => 'C',
            (Outcome::MissMethod, _) => 'D',
            (Outcome::UncacheableCookie, _) => 'K',
            (_, 'S') => 'S',
            (_, 'A' | ' ') => 'U',
            (_, 'M') if client == 'I' => 'I',
            (_, 'M') => 'M',
            _ if client == 'I' => 'N',
            _ => 'H',
        }
    }

    /// Slot `s` after the colon: whether the origin could be reached.
    fn reach(&self) -> char {
        match self.origin() {
            Asked::Nothing => ' ',
            Asked::Served | Asked::Validated => 'S',
            Asked::Failed => 'F',
        }
    }
}

/// What the origin did for a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Served,
    /// It said 304.
    Validated,
    /// It could not be reached, or answered with an error.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots c, s, f, p, e, t, the result and the reach.
    fn codes(outcome: Outcome, status: CacheStatus, answered: u16) -> String {
        let told = Told {
            outcome,
            status,
            answered: StatusCode::from_u16(answered).ok(),
        };
        let first = [told.cache(), told.server(), told.fill(), told.proxy()];
        let rest = [told.error(), told.tunnel(), told.result('S'), told.reach()];
        first.into_iter().chain(rest).collect()
    }

    fn forwarded(why: Forwarded) -> CacheStatus {
        CacheStatus {
            forwarded: Some(why),
            ..CacheStatus::default()
        }
    }

    #[test]
    fn each_way_to_an_answer_has_atss_letters() {
        let hit = CacheStatus::default();
        let stored = |why| CacheStatus {
            stored: true,
            ..forwarded(why)
        };
        let collapsed = CacheStatus {
            collapsed: true,
            ..forwarded(Forwarded::UriMiss)
        };
        let validated = CacheStatus {
            forwarded_status: Some(304),
            ..forwarded(Forwarded::Stale)
        };
        for (outcome, status, expected) in [
            (Outcome::HitRam, hit, "R   N H "),
            (Outcome::HitFast, hit, "H   N H "),
            (Outcome::HitCapacity, hit, "H   N H "),
            (Outcome::HitWhileWriting, collapsed, "W   N H "),
            (Outcome::HitRevalidated, validated, "SNURN SS"),
            (Outcome::HitRevalidated, hit, "S   N S "),
            (Outcome::StaleWhileRevalidate, hit, "S   N S "),
            (Outcome::StaleAccepted, hit, "S   N S "),
            (
                Outcome::StaleOriginFailed,
                forwarded(Forwarded::Stale),
                "SE  C SF",
            ),
            (
                Outcome::StaleOriginError,
                forwarded(Forwarded::Stale),
                "SE  S SF",
            ),
            (Outcome::MissCold, stored(Forwarded::UriMiss), "MSWSN MS"),
            (
                Outcome::MissCold,
                forwarded(Forwarded::VaryMiss),
                "MS SN MS",
            ),
            (Outcome::MissChanged, stored(Forwarded::Stale), "SSUSN SS"),
            (Outcome::MissNoCache, stored(Forwarded::Request), "ASUSN US"),
            (
                Outcome::MissNoStore,
                forwarded(Forwarded::Request),
                " S SNFUS",
            ),
            (Outcome::MissReadError, stored(Forwarded::Miss), "MSWSR MS"),
            (
                Outcome::MissMethod,
                forwarded(Forwarded::Method),
                " S SNMDS",
            ),
            (
                Outcome::MissCacheOff,
                forwarded(Forwarded::Bypass),
                " S SNOCS",
            ),
        ] {
            assert_eq!(codes(outcome, status, 200), expected, "{outcome:?}");
        }
        assert_eq!(codes(Outcome::HitRam, hit, 304), "R  NN H ");
    }

    #[test]
    fn a_request_says_nothing_of_an_answer_yet() {
        let asking = Told::asking(Outcome::MissCold, Forwarded::UriMiss);
        let (server, fill, proxy) = (asking.server(), asking.fill(), asking.proxy());
        assert_eq!([server, fill, proxy, asking.reach()], [' '; 4]);
        assert_eq!(asking.cache(), 'M');
    }
}
