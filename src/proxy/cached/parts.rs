//! Ranges of what is not held whole: asked for in fragments, and stored.

use super::job::{FillHead, Job, Moment};
use super::lead::{Fetched, Place, judge, own_fields, received, share_whole};
use super::plan::Plan;
use super::pump::Leading;
use super::{Cached, Step};
use crate::cache::{BodyReader, NewObject, NotStored, ObjectKind};
use crate::http::framing::BodyFraming;
use crate::http::partial;
use crate::http::range;
use crate::http::storable::Storable;
use crate::http::stored::StoredHead;
use crate::metrics::Metric;
use crate::proxy::cache_status::CacheStatus;
use crate::proxy::client::ClientWrite;
use crate::proxy::fill::FillWriter;
use crate::proxy::origin::OriginResponse;
use crate::proxy::parts;
use crate::proxy::relay::{self, Account};
use crate::proxy::resume::Tail;
use crate::proxy::serve::Serving;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use std::ops::Range;
use std::rc::Rc;

/// An object of which a part is coming.
pub(super) struct Part {
    pub(super) head: StoredHead,
    pub(super) body: BodyReader,
    /// Fields for this client only: they are not stored.
    pub(super) own: HeaderMap,
}

impl Cached<'_> {
    /// The fragments to ask for in place of the client's range, where parts are
    /// stored.
    pub(super) fn part(&self) -> Option<Range<u64>> {
        let (head, policy) = (&self.routed.head, &self.routed.policy);
        let stores = policy.range_lookup && !policy.range_write && self.cache.holds_parts();
        if !stores || head.headers.contains_key(AUTHORIZATION) {
            return None;
        }
        let wanted = partial::wanted(&head.method, &head.headers)?;
        let size = self.cache.fragment_bytes().into();
        Some(partial::widened(&wanted, size, parts::STRETCH_MAX))
    }

    /// The object of which this request fetched a part for everybody.
    pub(super) async fn serve_part<W: ClientWrite>(
        &self,
        part: Part,
        plan: Plan,
        reply: &mut W,
    ) -> Step {
        let status = CacheStatus {
            stored: true,
            ..plan.status()
        };
        let route = relay::route(self.routed);
        let account = Account::new(plan.outcome, route.clone());
        let length = Some(part.body.remaining());
        let serving = Serving {
            head: &part.head,
            own: part.own,
            source: self.source(part.body, &part.head),
            length,
            outcome: plan.outcome,
            route,
            status,
        };
        match self.server(reply).serve(serving).await {
            Ok(ended) => Step::Ended(ended),
            Err(error) if error.is_lost => Step::Again,
            Err(error) => {
                Step::Ended(account.failed(reply, error.outcome, error.answer, &error.detail))
            }
        }
    }
}

/// A 206 that holds all of the representation is as good as a 200; of another,
/// the head is stored, and the fragments as they come.
pub(super) async fn share_part(
    job: &Job,
    writer: FillWriter<FillHead>,
    asked: &Range<u64>,
    (response, moment): (OriginResponse, Moment),
) -> Fetched {
    let size = job.tools.cache.fragment_bytes().into();
    let Ok(part) = partial::storable_part(&response.headers, asked, size) else {
        return not_part(job, writer);
    };
    let response = OriginResponse {
        status: StatusCode::OK,
        headers: partial::whole_fields(&response.headers),
        framing: BodyFraming::Length(part.whole),
        ..response
    };
    if part.len() == part.whole {
        return share_whole(job, writer, response, moment);
    }
    let placed = judge(job, &response).ok();
    let placed = placed.zip(Place::of(job, &response.headers));
    let Some(placed) = placed else {
        return not_part(job, writer);
    };
    // Dropping the writer sends the followers back to the cache.
    match begin_parts(job, response, placed, (&part, &moment)).await {
        Ok(part) => Fetched::Part(Box::new(part)),
        // What is there was asked for later, so this range is for its client alone.
        Err(NotStored::Replaced) => Fetched::NotPart,
        Err(_) => not_part(job, writer),
    }
}

/// The key is remembered, so that the next range goes to the origin as it is.
fn not_part(job: &Job, writer: FillWriter<FillHead>) -> Fetched {
    writer.uncacheable(job.tools.clock.mono());
    Fetched::NotPart
}

async fn begin_parts(
    job: &Job,
    response: OriginResponse,
    (storable, place): (Storable, Place),
    (part, moment): (&range::Part, &Moment),
) -> Result<Part, NotStored> {
    let head = StoredHead::build(&received(&response), &storable);
    let key = place.key;
    let object = NewObject {
        key: key.clone(),
        kind: ObjectKind::Object,
        meta: head.as_bytes().clone(),
        body_len: Some(part.whole),
        epoch: moment.epoch,
    };
    job.tools.cells.add(Metric::CacheWrites, 1);
    let cache = &job.tools.cache;
    let begin = || cache.begin_parts(object, job.pinned_until());
    let begun = match moment.turn.store(&key, begin) {
        Some(Ok(begun)) => begun.await,
        Some(Err(refused)) => Err(refused),
        None => Err(NotStored::Replaced),
    };
    let hit = begun.inspect_err(|_| job.tools.cells.add(Metric::CacheWriteErrors, 1))?;
    if let Some(marker) = place.marker {
        Leading::of(job, marker).store(&job.tools, moment);
    }
    let own = own_fields(&response.headers, &storable.dropped);
    let means = Rc::new(job.means(head.clone()));
    let tail = Tail::new(response.body, part.len());
    let parts = hit.parts().ok_or(NotStored::Replaced)?;
    parts::take(&means, &parts, tail, part);
    Ok(Part {
        head,
        body: hit.body,
        own,
    })
}
