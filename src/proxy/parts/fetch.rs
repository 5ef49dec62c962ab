//! Fetching fragments in a row.

use crate::cache::{Cache, NotStored, Parts};
use crate::http::policy::CachePolicy;
use crate::http::stored::StoredHead;
use crate::metrics::{Cells, Metric};
use crate::proxy::fill::{PartFailure, PartTable, Stretch};
use crate::proxy::origin::{OriginPool, Upstream};
use crate::proxy::resume::{NotResumed, Resume, Tail, Wanted};
use bytes::Bytes;
use http::HeaderMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// How often a store waits for the write backlog to go down.
const PATIENCE: u32 = 4;

/// What fetching takes.
pub(in crate::proxy) struct Means {
    pub(in crate::proxy) cache: Arc<Cache>,
    pub(in crate::proxy) cells: Arc<Cells>,
    pub(in crate::proxy) origins: OriginPool,
    pub(in crate::proxy) table: Arc<PartTable>,
    pub(in crate::proxy) upstream: Upstream,
    /// The request's fields as they go to the origin.
    pub(in crate::proxy) fields: HeaderMap,
    pub(in crate::proxy) policy: Arc<CachePolicy>,
    /// Whether what comes may be stored, and given to others: the request says
    /// nothing against it (RFC 9111 3.5, 5.2.1.5).
    pub(in crate::proxy) shares: bool,
    /// The representation.
    pub(in crate::proxy) head: StoredHead,
}

/// Asks for the fragments of `stretch` in a task of its own, which goes on to their
/// end whoever leaves.
pub(super) fn spawn(means: Rc<Means>, parts: Parts, stretch: Stretch) {
    tokio::task::spawn_local(async move {
        match ask(&means, &parts, &stretch.indices()).await {
            // What is held is then no more to be kept than this is.
            Ok(tail) if !tail.is_storable => stretch.fail(&PartFailure::Changed),
            Ok(tail) => pour(&means, &parts, stretch, tail).await,
            Err(failure) => stretch.fail(&failure),
        }
    });
}

/// Takes the fragments of `stretch` from a response that has begun.
pub(in crate::proxy) fn begin(means: Rc<Means>, parts: Parts, stretch: Stretch, tail: Tail) {
    tokio::task::spawn_local(async move { pour(&means, &parts, stretch, tail).await });
}

/// Fragment `index` for one request alone, not stored; `None` when it broke off.
pub(super) async fn private(
    means: &Means,
    parts: &Parts,
    index: u64,
) -> Result<Option<Bytes>, PartFailure> {
    let mut tail = ask(means, parts, &(index..index + 1)).await?;
    let length = length_of(parts, index);
    let mut gathered = Vec::new();
    while let Ok(Some(data)) = tail.next().await {
        gather(&mut gathered, data, length);
    }
    Ok((gathered.len() == length).then(|| gathered.into()))
}

async fn ask(means: &Means, parts: &Parts, indices: &Range<u64>) -> Result<Tail, PartFailure> {
    let resume = Resume {
        origins: &means.origins,
        upstream: &means.upstream,
        fields: means.fields.clone(),
        policy: &means.policy,
    };
    let wanted = Wanted {
        head: &means.head,
        length: Some(parts.body_len()),
        bytes: parts.bytes_of(indices),
    };
    resume.ask(&wanted).await.map_err(|no| match no {
        NotResumed::Changed => PartFailure::Changed,
        NotResumed::Failed(failure) => PartFailure::Origin(failure),
    })
}

/// A body that breaks off leaves the rest to whoever waits for it.
async fn pour(means: &Means, parts: &Parts, mut stretch: Stretch, mut tail: Tail) {
    let mut gathered = Vec::new();
    let mut stored = false;
    while let Ok(Some(data)) = tail.next().await {
        let mut rest = data;
        while !rest.is_empty() && !stretch.indices().is_empty() {
            let index = stretch.indices().start;
            rest = gather(&mut gathered, rest, length_of(parts, index));
            if gathered.len() < length_of(parts, index) {
                continue;
            }
            let bytes = Bytes::from(std::mem::take(&mut gathered));
            means.cells.add(Metric::PartsFetched, 1);
            let kept = store(parts, index, &bytes).await;
            stretch.deliver(bytes);
            if let Err(no) = kept {
                tracing::debug!(%no, "a fragment is not stored");
                return;
            }
            stored = true;
        }
        if stretch.indices().is_empty() {
            tail.end().await;
            break;
        }
    }
    if stored {
        means.cache.renew(parts).await;
    }
}

/// Moves of `data` what the fragment still lacks; what is left.
fn gather(gathered: &mut Vec<u8>, mut data: Bytes, length: usize) -> Bytes {
    if gathered.capacity() < length {
        gathered.reserve_exact(length - gathered.len());
    }
    let more = data.split_to(data.len().min(length.saturating_sub(gathered.len())));
    gathered.extend_from_slice(&more);
    data
}

fn length_of(parts: &Parts, index: u64) -> usize {
    let range = parts.bytes_of(&(index..index + 1));
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

async fn store(parts: &Parts, index: u64, bytes: &Bytes) -> Result<(), NotStored> {
    for _ in 0..PATIENCE {
        match parts.store(index, bytes) {
            Err(NotStored::Backlog) => parts.make_room().await,
            stored => return stored,
        }
    }
    parts.store(index, bytes)
}
