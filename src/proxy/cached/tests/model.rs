//! A small model of RFC 9111, written from its text and from none of this
//! code: which stored responses may answer a request.

/// The largest number of seconds (RFC 9111 1.2.2).
const MOST: u64 = 1 << 31;

/// What Cache-Control of a response comes to. Times are in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    pub(super) no_store: bool,
    pub(super) no_cache: bool,
    pub(super) private: bool,
    pub(super) public: bool,
    pub(super) must_revalidate: bool,
    pub(super) proxy_revalidate: bool,
    pub(super) max_age: Option<u64>,
    pub(super) s_maxage: Option<u64>,
    pub(super) while_revalidate: Option<u64>,
    pub(super) if_error: Option<u64>,
}

/// An Expires.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expires {
    At(u64),
    Invalid,
}

/// What selects a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selects {
    Nothing,
    FieldA,
    Everything,
}

/// What a response says. Points of time are in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) status: u16,
    pub(super) control: Option<Control>,
    pub(super) age: u64,
    pub(super) date: Option<u64>,
    pub(super) expires: Option<Expires>,
    pub(super) modified: Option<u64>,
    pub(super) selects: Selects,
}

/// What a request says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    pub(super) no_cache: bool,
    pub(super) no_store: bool,
    pub(super) only_if_cached: bool,
    pub(super) max_age: Option<u64>,
    pub(super) min_fresh: Option<u64>,
    /// `Some(None)` is any staleness.
    pub(super) max_stale: Option<Option<u64>>,
    pub(super) authorized: bool,
    pub(super) field_a: Option<u64>,
}

/// A response that came from the origin, and the request that it came for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) id: usize,
    pub(super) said: Said,
    pub(super) asked: Asked,
    pub(super) received: u64,
}

impl Record {
    fn control(&self) -> Control {
        self.said.control.unwrap_or_default()
    }

    /// Section 3, and 3.5 on Authorization.
    pub(super) fn may_be_stored(&self) -> bool {
        let control = self.control();
        let shared = control.public || control.must_revalidate || control.s_maxage.is_some();
        let explicit =
            control.max_age.is_some() || control.s_maxage.is_some() || self.said.expires.is_some();
        let status = explicit || control.public || self.may_be_guessed();
        !control.no_store
            && !control.private
            && !self.asked.no_store
            && self.said.selects != Selects::Everything
            && (!self.asked.authorized || shared)
            && status
    }

    /// RFC 9110 15.1.
    fn may_be_guessed(&self) -> bool {
        [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(&self.said.status)
    }

    /// Section 4.2.1 and 4.2.2.
    fn lifetime(&self) -> u64 {
        let control = self.control();
        let date = self.said.date.unwrap_or(self.received);
        let expires = self.said.expires.map(|expires| match expires {
            Expires::At(at) => at.saturating_sub(date),
            Expires::Invalid => 0,
        });
        let explicit = control.s_maxage.or(control.max_age).or(expires);
        explicit.unwrap_or_else(|| self.guess(date.min(self.received)))
    }

    fn guess(&self, date: u64) -> u64 {
        let permitted = self.may_be_guessed() || self.control().public;
        let since = self.said.modified.map(|at| date.saturating_sub(at));
        since
            .filter(|_| permitted)
            .map_or(0, |secs| (secs / 10).min(86_400))
    }

    /// Section 4.2.3.
    pub(super) fn age(&self, now: u64) -> u64 {
        let date = self.said.date.unwrap_or(self.received);
        let apparent = self.received.saturating_sub(date);
        let resident = now - self.received;
        (apparent.max(self.said.age) + resident).min(MOST)
    }

    /// Section 4.1.
    pub(super) fn matches(&self, asked: &Asked) -> bool {
        self.said.selects == Selects::Nothing || self.asked.field_a == asked.field_a
    }

    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.lifetime() > self.age(now)
    }

    fn staleness(&self, now: u64) -> u64 {
        self.age(now).saturating_sub(self.lifetime())
    }

    /// Section 4.2.4; s-maxage implies proxy-revalidate (5.2.2.10), which we lift
    /// where the response itself allows staleness.
    fn forbids_staleness(&self) -> bool {
        let control = self.control();
        let allows = control.while_revalidate.is_some() || control.if_error.is_some();
        control.no_cache
            || control.must_revalidate
            || control.proxy_revalidate
            || (control.s_maxage.is_some() && !allows)
    }

    /// Section 4: whether it may answer without asking the origin.
    pub(super) fn may_answer(&self, asked: &Asked, now: u64) -> bool {
        if !self.may_be_stored() || !self.matches(asked) || self.control().no_cache {
            return false;
        }
        if asked.no_cache || self.is_too_old(asked, now) {
            return false;
        }
        let left = self.lifetime().saturating_sub(self.age(now));
        if asked.min_fresh.is_some_and(|least| left < least) {
            return false;
        }
        self.is_fresh(now) || (!self.forbids_staleness() && self.is_stale_wanted(asked, now))
    }

    /// Section 5.2.1.1.
    fn is_too_old(&self, asked: &Asked, now: u64) -> bool {
        let slack = asked.max_stale.map_or(0, |most| most.unwrap_or(MOST));
        asked
            .max_age
            .is_some_and(|most| self.age(now) > most + slack)
    }

    /// Section 5.2.1.2, and RFC 5861 3.
    fn is_stale_wanted(&self, asked: &Asked, now: u64) -> bool {
        let staleness = self.staleness(now);
        let within = |most: u64| staleness <= most;
        let accepted = asked.max_stale.is_some_and(|most| most.is_none_or(within));
        accepted || self.control().while_revalidate.is_some_and(within)
    }

    /// RFC 5861 4: an error is no better than another; or a day where the response names no window.
    pub(super) fn may_stand_in(&self, asked: &Asked, now: u64) -> bool {
        let window = self.control().if_error.unwrap_or(86_400);
        self.may_be_stored()
            && self.said.status != 500
            && self.matches(asked)
            && !self.forbids_staleness()
            && self.staleness(now) <= window
    }

    /// The same, had its request had Authorization, or none.
    fn with_authorization(&self, authorized: bool) -> Self {
        let mut other = *self;
        other.asked.authorized = authorized;
        other
    }

    /// Section 3.2 and 4.3.4: what a 304 says takes the place of what was said.
    /// Section 3.5: not where nothing but the Authorization of its request bars
    /// that from others, and what was said had no leave from it to be shared.
    pub(super) fn renew(&mut self, said: &Said, asked: &Asked, now: u64) {
        let before = *self;
        self.merge(said, asked, now);
        let is_barred = !self.may_be_stored() && self.with_authorization(false).may_be_stored();
        if is_barred && !before.with_authorization(true).may_be_stored() {
            *self = before;
        }
    }

    fn merge(&mut self, said: &Said, asked: &Asked, now: u64) {
        self.received = now;
        self.asked.authorized = asked.authorized;
        self.said.age = said.age;
        self.said.date = said.date;
        self.said.control = said.control.or(self.said.control);
        self.said.expires = said.expires.or(self.said.expires);
        self.said.modified = said.modified.or(self.said.modified);
    }
}
