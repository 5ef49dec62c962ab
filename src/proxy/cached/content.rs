//! POST through the cache, where a record asks for it: the content is part of
//! the key, so a stored response answers the same question only
//! (`http.cache.post_method`, RFC 9110 9.3.3).

use crate::cache::CacheKey;
use crate::http::framing::BodyFraming;
use crate::metrics::Metric;
use crate::proxy::client::{BodyError, ClientRead, ClientWrite};
use crate::proxy::context::WorkerContext;
use crate::proxy::fetch::broken;
use crate::proxy::origin::{BrokenBody, OriginError};
use crate::proxy::outcome::{Ended, Outcome, Route};
use crate::proxy::relay::Account;
use crate::proxy::routed::Routed;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE};
use http::{HeaderValue, Method};
use sha1_smol::Sha1;

/// Bytes of content that are read before the cache is looked up; a POST with
/// more, or of unknown length, is passed on.
const CONTENT_MAX: u64 = 64 * 1024;

/// Whether the cache may answer the request, which is no GET.
pub(in crate::proxy) fn is_keyed(routed: &Routed) -> bool {
    let is_short = match routed.head.framing {
        BodyFraming::None => true,
        BodyFraming::Length(bytes) => bytes <= CONTENT_MAX,
        BodyFraming::Chunked | BodyFraming::UntilClose => false,
    };
    routed.policy.post && routed.head.method == Method::POST && is_short && routed.upgrade.is_none()
}

/// Carries out such a request as [`super::run`] does a GET.
pub(in crate::proxy) async fn run<R: ClientRead, W: ClientWrite>(
    ctx: &WorkerContext,
    routed: &mut Routed,
    mut body: R,
    reply: &mut W,
) -> Ended {
    let account = Account::new(Outcome::MissMethod, Route::None);
    if let Err(error) = body.invite(reply).await {
        return account.client_gone(reply, &error);
    }
    let content = match whole(&mut body).await {
        Ok(content) => content,
        Err(error) => return account.origin_failed(reply, &fault(&error)),
    };
    let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
    ctx.cells.add(Metric::ClientRequestBodyBytes, bytes);
    routed.key = keyed(routed, &content);
    routed.content = Some(content);
    super::run(ctx, routed, body, reply).await
}

async fn whole<R: ClientRead>(body: &mut R) -> Result<Bytes, BodyError> {
    let mut content = Vec::new();
    while let Some(part) = body.next().await? {
        content.extend_from_slice(&part);
    }
    Ok(content.into())
}

fn fault(error: &BodyError) -> OriginError {
    match broken(error) {
        BrokenBody::Broken(reason) => OriginError::RequestBody(reason),
        BrokenBody::Stalled(after) => OriginError::RequestStalled(after),
    }
}

/// The URL's key with a sum of the content and of what says how it is meant.
/// Behind a blank, which no URL holds, as the generation is.
fn keyed(routed: &Routed, content: &[u8]) -> CacheKey {
    let mut sum = Sha1::new();
    for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE] {
        let lines = routed.head.headers.get_all(name).iter();
        // No value holds a line feed.
        lines
            .map(HeaderValue::as_bytes)
            .for_each(|line| sum.update(line));
        sum.update(b"\n");
    }
    sum.update(content);
    let url = String::from_utf8_lossy(routed.key.text());
    CacheKey::of_url(format!("{url} POST {}", sum.digest()))
}
