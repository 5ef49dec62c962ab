//! A request that finds another one fetching what it wants: by record it
//! follows, asks itself, is served stale, or is refused.

use super::ask::Asking;
use super::job::FillHead;
use super::{Cached, Copy, Step};
use crate::http::reuse;
use crate::proxy::answer::Answer;
use crate::proxy::cache_status::CacheStatus;
use crate::proxy::client::ClientWrite;
use crate::proxy::decide::{self, Meanwhile, WhenBusy};
use crate::proxy::fill::{FillReader, HeadEvent};
use crate::proxy::outcome::{Outcome, Route};
use crate::proxy::relay::Account;
use crate::proxy::settings::count;
use std::time::Duration;

impl Cached<'_> {
    /// Another request fetches what this one wants
    /// (`http.cache.open_write_fail_action`).
    pub(super) async fn behind<W: ClientWrite>(
        &mut self,
        reader: FillReader<FillHead>,
        asking: Asking,
        reply: &mut W,
    ) -> Step {
        let action = self
            .routed
            .snapshot
            .records
            .http_cache_open_write_fail_action;
        let busy = decide::when_busy(action, self.has_meanwhile(&asking));
        let waits = matches!(busy, WhenBusy::Ask | WhenBusy::Refuse);
        if waits && self.ends_in_time(&reader).await {
            return Step::Again;
        }
        match busy {
            WhenBusy::Follow => self.follow(reader, asking, reply).await,
            WhenBusy::Ask => Step::Pass(asking.plan.passing()),
            WhenBusy::ServeStale => self.serve_meanwhile(asking, reply).await,
            WhenBusy::Refuse => {
                let account = Account::new(Outcome::AnsweredInternal, Route::None);
                let detail = "another request fetches the same, and the record says not to wait";
                let answer = Answer::Busy;
                Step::Ended(account.failed(reply, answer.outcome(), answer, detail))
            }
        }
    }

    /// Whether the other's fetch is over before this one would have to go its
    /// own way (`http.cache.max_open_write_retries` times
    /// `open_read_retry_time`, once a request).
    async fn ends_in_time(&mut self, reader: &FillReader<FillHead>) -> bool {
        let records = &self.routed.snapshot.records;
        let retries = count(records.http_cache_max_open_write_retries);
        let millis = retries.saturating_mul(count(records.http_cache_open_read_retry_time));
        if std::mem::replace(&mut self.has_waited, true) || millis == 0 {
            return false;
        }
        let end = reader.until(|is_over| is_over.then_some(()));
        let ended = tokio::time::timeout(Duration::from_millis(millis), end);
        ended.await.is_ok()
    }

    fn has_meanwhile(&self, asking: &Asking) -> Meanwhile {
        let Some((stale, _)) = &asking.held else {
            return Meanwhile::Nothing;
        };
        let now = self.ctx.shared.clock.wall();
        let policy = &self.routed.policy;
        let may = reuse::may_serve_meanwhile(&stale.head.facts(), policy, now);
        if may && !stale.suspect && asking.plan.is_only_old() {
            return Meanwhile::Stale;
        }
        Meanwhile::Unfit
    }

    async fn serve_meanwhile<W: ClientWrite>(&self, asking: Asking, reply: &mut W) -> Step {
        let Some((stale, body)) = asking.held else {
            return Step::Again;
        };
        let copy = Copy::new(&stale.head, body, &stale.at.key);
        let told = (Outcome::StaleWhileRevalidate, CacheStatus::default());
        let served = self.serve_held(copy, told, reply).await;
        self.or_gone(served, &stale, reply)
    }

    /// What a fill comes to, unless the records say not to wait so long for it
    /// (`http.cache.max_open_read_retries` times `open_read_retry_time`).
    pub(super) async fn head_in_time(
        &self,
        reader: &mut FillReader<FillHead>,
    ) -> Option<HeadEvent<FillHead>> {
        let records = &self.routed.snapshot.records;
        let retries = records.http_cache_max_open_read_retries;
        if retries < 0 {
            return Some(reader.head().await);
        }
        let millis = count(retries).saturating_mul(count(records.http_cache_open_read_retry_time));
        let patience = Duration::from_millis(millis);
        tokio::time::timeout(patience, reader.head()).await.ok()
    }
}
