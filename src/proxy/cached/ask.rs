//! A request that needs the origin: alone, first of several, or behind another.

use super::job::{Conditions, FillHead, Job, Stale};
use super::lead::{self, Fetched, Filling};
use super::lookup::{Found, Held};
use super::plan::Plan;
use super::{Cached, Copy, Step, pump};
use crate::cache::{BodyReader, CacheKey};
use crate::http::conditional::Precondition;
use crate::http::reuse::OriginFailure;
use crate::http::storable::NotStorable;
use crate::proxy::cache_status::{CacheStatus, Forwarded};
use crate::proxy::client::ClientWrite;
use crate::proxy::decide;
use crate::proxy::fetch::{self, Passing};
use crate::proxy::fill::{Claim, Failure, FillReader, FillWriter, HeadEvent};
use crate::proxy::origin::{OriginBody, OriginResponse};
use crate::proxy::outcome::{Ended, Outcome, Route};
use crate::proxy::relay::{self, Account, Framed};
use crate::proxy::serve::Serving;
use crate::proxy::source::{Following, Source, SourceError};
use crate::proxy::via::Told;
use http::header::{AUTHORIZATION, RANGE};
use http::{HeaderMap, Method, StatusCode};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Lookups made anew because other fills ended meanwhile.
const OVERTAKEN_MAX: u32 = 3;

/// What is at hand while the origin is asked.
pub(super) struct Asking {
    pub(super) job: Rc<Job>,
    pub(super) plan: Plan,
    /// What is held, and its body to serve.
    pub(super) held: Option<(Rc<Stale>, BodyReader)>,
}

impl Asking {
    fn stale(&self) -> Option<&Rc<Stale>> {
        self.held.as_ref().map(|(stale, _)| stale)
    }

    /// What it comes to when the origin has another response.
    fn replaced(&self) -> Outcome {
        let had_validator = self.stale().is_some_and(|stale| stale.head.has_validator());
        match self.plan.reason {
            Some(reason) => decide::replaced(reason, had_validator),
            None => self.plan.outcome,
        }
    }

    /// A range that can't be stored is asked for as the client did.
    const fn pass_range(&self) -> Step {
        Step::Pass(Passing {
            outcome: Outcome::MissRange,
            why: self.plan.why,
        })
    }

    /// What a response for this client only comes to.
    fn relayed(&self, reason: NotStorable) -> Outcome {
        if self.plan.outcome == Outcome::UncacheableRemembered {
            return Outcome::UncacheableRemembered;
        }
        decide::uncacheable(reason)
    }
}

impl Cached<'_> {
    /// Asks the origin, or waits for another request that does.
    pub(super) async fn ask<W: ClientWrite>(
        &mut self,
        found: Found,
        plan: Plan,
        reply: &mut W,
    ) -> Step {
        let key = found.key(self.routed);
        if let Some(passing) = self.passes(&found, &plan) {
            let may_follow = passing.may_follow() && !self.is_authorized();
            let following = self.ctx.shared.fills.follow(&key);
            let Some(reader) = following.filter(|_| may_follow) else {
                return Step::Pass(passing);
            };
            let asking = self.asking(found, plan);
            return self.follow(reader, asking, reply).await;
        }
        let asking = self.asking(found, plan);
        if self.is_authorized() {
            return self.alone(asking, Conditions::Strip, reply).await;
        }
        self.take_part(&key, asking, reply).await
    }

    /// Begins the fill of a key, or waits for the one that is under way.
    pub(super) async fn take_part<W: ClientWrite>(
        &mut self,
        key: &CacheKey,
        asking: Asking,
        reply: &mut W,
    ) -> Step {
        let now = self.ctx.shared.clock.mono();
        match self.ctx.shared.fills.claim(key, now) {
            Claim::Writer(_) if self.is_overtaken() => Step::Again,
            Claim::Writer(writer) => self.write(writer, asking, Conditions::Strip, reply).await,
            Claim::Follower(reader) => self.behind(reader, asking, reply).await,
            Claim::Remembered if asking.job.part.is_some() => asking.pass_range(),
            Claim::Remembered => {
                let mut asking = asking;
                asking.plan.outcome = Outcome::UncacheableRemembered;
                self.alone(asking, Conditions::Keep, reply).await
            }
        }
    }

    /// Whether the origin may answer the client as nobody else: what another
    /// request fetches now is then not waited for.
    fn is_authorized(&self) -> bool {
        self.routed.head.headers.contains_key(AUTHORIZATION)
    }

    /// Whether another fill ended after the cache was looked up, and may have
    /// stored what was not found there; a few times only, for it may have been
    /// another key's.
    fn is_overtaken(&mut self) -> bool {
        let is_overtaken = self.ctx.shared.fills.ended() != self.ended;
        let looks_again = is_overtaken && self.overtaken < OVERTAKEN_MAX;
        self.overtaken += u32::from(looks_again);
        looks_again
    }

    /// What is passed on without being stored: what asks for no store, and with
    /// nothing held, HEAD, whose answer has no body, and ranges.
    fn passes(&self, found: &Found, plan: &Plan) -> Option<Passing> {
        let head = &self.routed.head;
        let passing = |outcome, why| Some(Passing { outcome, why });
        if self.asked.directives.no_store {
            return passing(Outcome::MissNoStore, Forwarded::Request);
        }
        if found.held.is_ok() {
            return None;
        }
        if head.method == Method::HEAD {
            return passing(plan.outcome, plan.why);
        }
        let keeps_range = head.headers.contains_key(RANGE) && !self.routed.policy.range_write;
        if keeps_range && self.part().is_none() {
            return passing(Outcome::MissRange, plan.why);
        }
        None
    }

    fn job(&self, outcome: Outcome, why: Forwarded) -> Job {
        let told = Told::asking(outcome, why);
        Job::of(self.ctx, self.routed, self.cache, (self.asked, told))
    }

    fn asking(&self, found: Found, plan: Plan) -> Asking {
        let mut job = self.job(plan.outcome, plan.why);
        let stale = Stale::of(&found, self.routed);
        job.marker = found.marker;
        if stale.as_ref().is_some_and(|stale| !stale.suspect) {
            // A HEAD tells enough of it (RFC 9111 4.3.5).
            job.method = self.routed.head.method.clone();
        }
        let whole_is_held = found.held.as_ref().is_ok_and(|held| !held.has_gaps());
        job.part = self.part().filter(|_| !whole_is_held);
        let body = found.held.ok().map(|held| held.body);
        Asking {
            job: Rc::new(job),
            plan,
            held: stale.map(Rc::new).zip(body),
        }
    }

    /// Asks for itself, beside whoever else does: for HEAD, a head.
    pub(super) async fn alone<W: ClientWrite>(
        &mut self,
        asking: Asking,
        conditions: Conditions,
        reply: &mut W,
    ) -> Step {
        if reply.is_head() && asking.held.is_none() {
            return Step::Pass(asking.plan.passing());
        }
        let writer = FillWriter::unshared(&self.ctx.shared.fills, &asking.job.key);
        self.write(writer, asking, conditions, reply).await
    }

    async fn write<W: ClientWrite>(
        &mut self,
        writer: FillWriter<FillHead>,
        asking: Asking,
        conditions: Conditions,
        reply: &mut W,
    ) -> Step {
        let own = writer.reader();
        let (job, stale) = (Rc::clone(&asking.job), asking.stale().cloned());
        let (to, interim) = mpsc::channel(fetch::INTERIM_QUEUE);
        let fetched = lead::begin(job, writer, (stale, conditions), to);
        let Ok(fetched) = fetch::meanwhile(interim, reply, fetched).await else {
            return Step::Again;
        };
        let ended = match fetched {
            Fetched::Filling(filling) => return self.serve_own(own, *filling, asking, reply).await,
            Fetched::Refreshed(head, own) => {
                return self.serve_refreshed(&head, own, asking, reply).await;
            }
            Fetched::Part(part) => {
                drop(own);
                return self.serve_part(*part, asking.plan, reply).await;
            }
            Fetched::NotPart => return asking.pass_range(),
            Fetched::Relay(response, reason) => {
                let told = (asking.relayed(reason), conditions);
                self.relay(*response, told, &asking, reply).await
            }
            Fetched::Changed(response) => {
                let told = (asking.replaced(), conditions);
                self.relay(*response, told, &asking, reply).await
            }
            Fetched::ErrorResponse(status) => {
                let failure = lead::error_response(status);
                return self.serve_stale(failure, asking, reply).await;
            }
            Fetched::Error(error) => {
                return self.serve_stale(pump::failure(&error), asking, reply).await;
            }
        };
        Step::Ended(ended)
    }

    /// The response that this request fetched for everybody.
    async fn serve_own<W: ClientWrite>(
        &mut self,
        reader: FillReader<FillHead>,
        filling: Filling,
        asking: Asking,
        reply: &mut W,
    ) -> Step {
        let outcome = asking.replaced();
        let status = CacheStatus {
            stored: filling.is_stored,
            ..asking.plan.status()
        };
        let told = (outcome, relay::route(self.routed), status);
        let fill = (reader, filling.head, filling.own);
        self.serve_filling(fill, told, asking, reply).await
    }

    /// Serves a fill's response as it comes. One whose beginning is nowhere to
    /// be had any more is fetched again.
    async fn serve_filling<W: ClientWrite>(
        &mut self,
        (reader, head, own): (FillReader<FillHead>, Arc<FillHead>, HeaderMap),
        (outcome, route, status): (Outcome, Route, CacheStatus),
        asking: Asking,
        reply: &mut W,
    ) -> Step {
        let means = (Arc::clone(self.cache), Arc::clone(&self.ctx.cells));
        let following = Following::new(reader, Arc::clone(&head), means);
        let account = Account::new(outcome, route.clone());
        let serving = Serving {
            head: &head.head,
            own,
            source: Source::filling(following),
            length: head.length,
            outcome,
            route,
            status,
        };
        match self.server(reply).serve(serving).await {
            Ok(ended) => Step::Ended(ended),
            Err(error) if error.is_lost => {
                Box::pin(self.alone(asking, Conditions::Strip, reply)).await
            }
            Err(error) => {
                Step::Ended(account.failed(reply, error.outcome, error.answer, &error.detail))
            }
        }
    }

    /// What is held was validated by this very request.
    async fn serve_refreshed<W: ClientWrite>(
        &self,
        head: &crate::http::stored::StoredHead,
        own: HeaderMap,
        asking: Asking,
        reply: &mut W,
    ) -> Step {
        let status = CacheStatus {
            forwarded_status: Some(304),
            ..asking.plan.status()
        };
        let Some((stale, body)) = asking.held else {
            return Step::Again;
        };
        let copy = Copy {
            own,
            ..Copy::new(head, body, &stale.at.key)
        };
        let told = (Outcome::HitRevalidated, status);
        let served = self.serve_held(copy, told, reply).await;
        self.or_gone(served, &stale, reply)
    }

    /// A copy whose body can't be read is fetched again, and taken out if a part
    /// of it is gone; not one whose missing parts the origin does not give now.
    pub(super) fn or_gone<W: ClientWrite>(
        &self,
        served: Result<Ended, SourceError>,
        stale: &Stale,
        reply: &mut W,
    ) -> Step {
        match served {
            Ok(ended) => Step::Ended(ended),
            Err(error) if !error.is_lost => Step::Ended(self.not_had(&error, reply)),
            Err(error) => {
                if error.is_gone {
                    self.cache.remove_copy(&stale.at.copy, &stale.at.key);
                }
                Step::Again
            }
        }
    }

    /// The origin failed: what is held stands in if it may (RFC 9111 4.2.4).
    async fn serve_stale<W: ClientWrite>(
        &self,
        failure: Failure,
        asking: Asking,
        reply: &mut W,
    ) -> Step {
        let account = Account::new(failure.outcome, relay::route(self.routed));
        let may = pump::is_origin_failure(&failure);
        let Some((stale, body)) = asking
            .held
            .filter(|(stale, _)| may && self.may_serve(stale, &failure))
        else {
            let (outcome, answer) = (failure.outcome, failure.answer);
            return Step::Ended(account.failed(reply, outcome, answer, &failure.detail));
        };
        let status = CacheStatus {
            forwarded: Some(Forwarded::Stale),
            forwarded_status: failure.status.map(|status| status.as_u16()),
            ..CacheStatus::default()
        };
        let outcome = match failure.status {
            Some(_) => Outcome::StaleOriginError,
            None => Outcome::StaleOriginFailed,
        };
        let copy = Copy::new(&stale.head, body, &stale.at.key);
        let served = self.serve_held(copy, (outcome, status), reply).await;
        self.or_gone(served, &stale, reply)
    }

    fn has_stand_in(&self, asking: &Asking, failure: &Failure) -> bool {
        let stale = asking.stale();
        stale.is_some_and(|stale| self.may_serve(stale, failure))
    }

    fn may_serve(&self, stale: &Stale, failure: &Failure) -> bool {
        let now = self.ctx.shared.clock.wall();
        let policy = &self.routed.policy;
        let how = match failure.status {
            Some(_) => OriginFailure::Status,
            None => OriginFailure::Silent,
        };
        stale.may_stand_in((&self.asked.directives, how), policy, now)
    }

    /// Waits for another request's fetch.
    pub(super) async fn follow<W: ClientWrite>(
        &mut self,
        mut reader: FillReader<FillHead>,
        asking: Asking,
        reply: &mut W,
    ) -> Step {
        let Some(event) = self.head_in_time(&mut reader).await else {
            return Step::Pass(asking.plan.passing());
        };
        match event {
            HeadEvent::Head(head) if self.refuses(&head.head) => Step::Pass(Passing::CONDITION),
            HeadEvent::Head(head) if self.may_share(&head) => {
                self.serve_shared((reader, head), asking, reply).await
            }
            HeadEvent::Head(head) => {
                drop(reader);
                Box::pin(self.turned_away(&head, asking, reply)).await
            }
            HeadEvent::Uncacheable if asking.job.part.is_some() => asking.pass_range(),
            HeadEvent::Uncacheable => Box::pin(self.alone(asking, Conditions::Keep, reply)).await,
            HeadEvent::Refreshed => {
                self.validated = true;
                Step::Again
            }
            HeadEvent::Failed(failure) if failure.is_abandoned() => Step::Again,
            HeadEvent::Failed(failure)
                if failure.status.is_some() && !self.has_stand_in(&asking, &failure) =>
            {
                // The origin has an answer, which was not wanted where this one
                // waited.
                Box::pin(self.alone(asking, Conditions::Strip, reply)).await
            }
            HeadEvent::Failed(failure) => self.serve_stale(failure, asking, reply).await,
        }
    }

    async fn serve_shared<W: ClientWrite>(
        &mut self,
        (reader, head): (FillReader<FillHead>, Arc<FillHead>),
        asking: Asking,
        reply: &mut W,
    ) -> Step {
        let status = CacheStatus {
            collapsed: true,
            ..asking.plan.status()
        };
        let told = (Outcome::HitWhileWriting, Route::None, status);
        let fill = (reader, head, HeaderMap::new());
        self.serve_filling(fill, told, asking, reply).await
    }

    /// A response for this client only. Where its conditions were taken off the
    /// request, they are answered here.
    async fn relay<W: ClientWrite>(
        &self,
        mut response: OriginResponse,
        (outcome, conditions): (Outcome, Conditions),
        asking: &Asking,
        reply: &mut W,
    ) -> Ended {
        let account = Account::new(outcome, relay::route(self.routed));
        let precondition = match conditions {
            Conditions::Strip => relay::precondition(self.routed, &response),
            Conditions::Keep => Precondition::Pass,
        };
        if precondition == Precondition::Failed {
            return account.precondition_failed(reply);
        }
        let told = (outcome, asking.plan.status());
        let mut framed = Framed::of(self.ctx, self.routed, &mut response, told);
        if precondition == Precondition::NotModified {
            framed.status = StatusCode::NOT_MODIFIED;
            return relay::relay(reply, &framed, &mut OriginBody::Empty, account).await;
        }
        relay::relay(reply, &framed, &mut response.body, account).await
    }

    /// Revalidates what was found in the background, unless somebody does
    /// already (RFC 5861 3), or the request wants or allows no fetch that is for
    /// others too.
    pub(super) fn revalidate_meanwhile(&self, found: &Found) {
        let mut job = self.job(Outcome::StaleWhileRevalidate, Forwarded::Stale);
        let stale = Stale::of(found, self.routed);
        let is_for_all = stale
            .as_ref()
            .is_some_and(|stale| job.may_share(&stale.head));
        if self.asked.directives.only_if_cached || !is_for_all {
            return;
        }
        let now = self.ctx.shared.clock.mono();
        let key = found.key(self.routed);
        let Claim::Writer(writer) = self.ctx.shared.fills.claim(&key, now) else {
            return;
        };
        job.marker.clone_from(&found.marker);
        if found.held.as_ref().is_ok_and(Held::has_gaps) {
            // Nobody waits for the whole of it.
            job.part = self.part();
            job.method = if job.part.is_some() {
                Method::GET
            } else {
                Method::HEAD
            };
        }
        tokio::task::spawn_local(async move {
            let fetched = lead::lead(&job, writer, (stale.as_ref(), Conditions::Strip), None);
            drop(fetched.await);
        });
    }
}
