//! Whether a response may be stored (RFC 9111 3), and which of its fields.

use super::cache_control::{RequestDirectives, ResponseDirectives, Scope};
use super::date;
use super::freshness::{self, Lifetime, LifetimeSource};
use super::policy::{CachePolicy, CookieRule, RequiredHeaders, SetCookiePolicy};
use super::target::RequestUrl;
use super::targeted;
use super::vary::{Vary, vary};
use crate::base::clock::WallTime;
use ::http::header::{
    self, AUTHORIZATION, CONTENT_TYPE, COOKIE, ETAG, HeaderName, LAST_MODIFIED, SET_COOKIE,
};
use ::http::{HeaderMap, Method, StatusCode};

/// A request and the head of its response.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// The request's effective URL.
    pub url: &'a RequestUrl,
    /// The request's fields as the client sent them.
    pub request: &'a HeaderMap,
    /// The response's status.
    pub status: StatusCode,
    /// The response's fields as the origin sent them.
    pub response: &'a HeaderMap,
    /// When it went on its way.
    pub times: Times,
}

/// When an exchange with the origin took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When the request was sent.
    pub request: WallTime,
    /// When the response's head was received.
    pub response: WallTime,
}

/// Why a response is not stored, or a request not looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStorable {
    /// Caching is off.
    #[error("caching is off")]
    CacheOff,
    /// The method is neither GET nor HEAD, or, to be stored, not GET.
    #[error("the method is not cached")]
    Method,
    /// The URL looks dynamic, and the policy refuses these.
    #[error("the URL looks dynamic")]
    Dynamic,
    /// no-store of the request (RFC 9111 5.2.1.5).
    #[error("the request says no-store")]
    RequestNoStore,
    /// A status that is never stored, or not without an explicit lifetime.
    #[error("status {0} is not stored")]
    Status(u16),
    /// must-understand, and a status we do not understand (5.2.2.3).
    #[error("status {0} must be understood to be stored")]
    MustUnderstand(u16),
    /// no-store of the response (5.2.2.5).
    #[error("the response says no-store")]
    NoStore,
    /// private without field names (5.2.2.7).
    #[error("the response says private")]
    Private,
    /// The request had Authorization, and the response does not allow sharing
    /// (3.5).
    #[error("the answer to a request with Authorization is not shared")]
    Authorization,
    /// The response asks for credentials.
    #[error("the response has WWW-Authenticate")]
    WwwAuthenticate,
    /// Cookie or Set-Cookie, and the policy refuses this content type.
    #[error("the cookie policy refuses it")]
    Cookie,
    /// Set-Cookie without an explicit lifetime, or the policy refuses it.
    #[error("the response has Set-Cookie")]
    SetCookie,
    /// `Vary: *`: no request would match.
    #[error("the response varies by everything")]
    VaryStar,
    /// `required_headers`.
    #[error("the response lacks the fields that the policy requires")]
    RequiredHeaders,
    /// Stale on arrival and without validator: nothing to reuse it by.
    #[error("neither a lifetime nor a validator")]
    NoLifetime,
}

/// How a response is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storable {
    /// Its Cache-Control.
    pub directives: ResponseDirectives,
    /// Its lifetime.
    pub lifetime: Lifetime,
    /// Its age on arrival, in seconds.
    pub age_at_receipt: u64,
    /// Fields to leave out: those that private or no-cache name, and Set-Cookie
    /// by policy.
    pub dropped: Vec<HeaderName>,
}

/// Whether the cache is looked up at all for this request.
///
/// # Errors
/// [`NotStorable::CacheOff`], [`NotStorable::Method`] or
/// [`NotStorable::Dynamic`].
pub fn may_look_up(
    method: &Method,
    url: &RequestUrl,
    policy: &CachePolicy,
) -> Result<(), NotStorable> {
    if !policy.enabled {
        return Err(NotStorable::CacheOff);
    }
    if *method != Method::GET && *method != Method::HEAD {
        return Err(NotStorable::Method);
    }
    if !policy.cache_dynamic && looks_dynamic(url) {
        return Err(NotStorable::Dynamic);
    }
    Ok(())
}

/// Whether the response may be stored (RFC 9111 3), by the head alone: that the
/// body arrives whole is for the fill to see.
///
/// # Errors
/// The first reason in the order of [`NotStorable`].
pub fn storable(exchange: &Exchange<'_>, policy: &CachePolicy) -> Result<Storable, NotStorable> {
    may_look_up(exchange.method, exchange.url, policy)?;
    if *exchange.method != Method::GET {
        return Err(NotStorable::Method);
    }
    if RequestDirectives::of(exchange.request).no_store {
        return Err(NotStorable::RequestNoStore);
    }
    let judged = response_storable(exchange.status, exchange.response, exchange.times, policy)?;
    let is_authorized = exchange.request.contains_key(AUTHORIZATION);
    refuse_authorization(is_authorized, &judged.directives, policy)?;
    refuse_cookies(exchange, &judged, policy)?;
    Ok(judged)
}

/// The part of [`storable`] that does not depend on the request: what a stored
/// response must still fulfil after a 304 changed its fields.
///
/// # Errors
/// As [`storable`].
pub fn response_storable(
    status: StatusCode,
    response: &HeaderMap,
    times: Times,
    policy: &CachePolicy,
) -> Result<Storable, NotStorable> {
    let judged = unjudged(status, response, times, policy);
    let (directives, lifetime) = (&judged.directives, judged.lifetime);
    refuse_status(status, directives, lifetime, policy)?;
    refuse_directives(status, directives)?;
    refuse_fields(status, response, lifetime, policy)?;
    if !is_reusable(&judged, response, times) {
        return Err(NotStorable::NoLifetime);
    }
    Ok(judged)
}

/// How the response would be stored, whether or not it may be.
pub(super) fn unjudged(
    status: StatusCode,
    response: &HeaderMap,
    times: Times,
    policy: &CachePolicy,
) -> Storable {
    let directives = heeded_directives(response, policy);
    let lifetime = match policy.ttl {
        // As if the origin had said max-age.
        Some(secs) => Lifetime {
            secs,
            source: LifetimeSource::MaxAge,
        },
        None => freshness::lifetime(status, response, &directives, policy, times.response),
    };
    Storable {
        lifetime,
        age_at_receipt: match policy.ttl {
            Some(_) => 0,
            None => freshness::age_at_receipt(response, times.request, times.response),
        },
        dropped: dropped_fields(&directives, policy),
        directives,
    }
}

/// The response's directives, less what the policy has no ear for. Fields that
/// they name stay left out.
fn heeded_directives(response: &HeaderMap, policy: &CachePolicy) -> ResponseDirectives {
    let mut directives = targeted::directives(response, &policy.targeted);
    if policy.ignore_server_no_cache || policy.ttl.is_some() {
        directives.no_store = false;
    }
    if policy.ignore_server_no_cache || policy.ttl.is_some() && directives.no_cache.is_whole() {
        directives.no_cache = Scope::Absent;
    }
    if policy.ttl.is_some() && directives.private.is_whole() {
        directives.private = Scope::Absent;
    }
    directives
}

/// Statuses whose caching rules we follow (RFC 9110 15, RFC 9111 5.2.2.3).
const fn is_understood(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200 | 203 | 204 | 300..=303 | 307 | 308 | 400 | 403..=405 | 410 | 414 | 451 | 500..=504
    )
}

/// Never stored: interim, partial, bound to a condition or range of one
/// request, to its credentials, or to one client (RFC 6585 3 to 6).
const fn is_never_stored(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        100..=199 | 206 | 304 | 401 | 407 | 412 | 416 | 428 | 429 | 431 | 511
    )
}

fn refuse_status(
    status: StatusCode,
    directives: &ResponseDirectives,
    lifetime: Lifetime,
    policy: &CachePolicy,
) -> Result<(), NotStorable> {
    let allowed = lifetime.source.is_explicit()
        || directives.public
        || freshness::is_heuristic_status(status)
        || policy.negative_lifetime(status.as_u16()).is_some();
    if is_never_stored(status) || !allowed {
        return Err(NotStorable::Status(status.as_u16()));
    }
    Ok(())
}

/// must-understand with a status that is understood overrides no-store
/// (RFC 9111 5.2.2.3).
fn refuse_directives(
    status: StatusCode,
    directives: &ResponseDirectives,
) -> Result<(), NotStorable> {
    if directives.must_understand && !is_understood(status) {
        return Err(NotStorable::MustUnderstand(status.as_u16()));
    }
    if directives.no_store && !directives.must_understand {
        return Err(NotStorable::NoStore);
    }
    if directives.private.is_whole() {
        return Err(NotStorable::Private);
    }
    Ok(())
}

fn refuse_fields(
    status: StatusCode,
    response: &HeaderMap,
    lifetime: Lifetime,
    policy: &CachePolicy,
) -> Result<(), NotStorable> {
    if response.contains_key(header::WWW_AUTHENTICATE) && !policy.ignore_authentication {
        return Err(NotStorable::WwwAuthenticate);
    }
    if vary(response) == Vary::Star {
        return Err(NotStorable::VaryStar);
    }
    let explicit = lifetime.source.is_explicit();
    let has_required = match policy.required_headers {
        RequiredHeaders::Nothing => true,
        RequiredHeaders::LifetimeOrLastModified => explicit || response.contains_key(LAST_MODIFIED),
        RequiredHeaders::Lifetime => explicit,
    };
    if status == StatusCode::OK && !has_required {
        return Err(NotStorable::RequiredHeaders);
    }
    let has_set_cookie = response.contains_key(SET_COOKIE);
    if has_set_cookie && (!explicit || policy.set_cookie == SetCookiePolicy::NoStore) {
        return Err(NotStorable::SetCookie);
    }
    Ok(())
}

/// Whether what a 206 brings may be added to what is held of its representation,
/// by what it says itself; `is_authorized` if the request had Authorization.
///
/// # Errors
/// [`NotStorable::NoStore`], [`NotStorable::Private`] or
/// [`NotStorable::Authorization`].
pub fn part_storable(
    is_authorized: bool,
    response: &HeaderMap,
    policy: &CachePolicy,
) -> Result<(), NotStorable> {
    let directives = heeded_directives(response, policy);
    refuse_directives(StatusCode::OK, &directives)?;
    refuse_authorization(is_authorized, &directives, policy)
}

/// Whether a response that a 304 to `request` confirmed may stay stored: like a
/// new one, one to Authorization needs leave to be shared (RFC 9111 3.5).
///
/// # Errors
/// [`NotStorable::Authorization`].
pub fn confirmed_storable(
    request: &HeaderMap,
    response: &HeaderMap,
    policy: &CachePolicy,
) -> Result<(), NotStorable> {
    if !request.contains_key(AUTHORIZATION) {
        return Ok(());
    }
    let directives = targeted::directives(response, &policy.targeted);
    refuse_authorization(true, &directives, policy)
}

/// RFC 9111 3.5.
fn refuse_authorization(
    is_authorized: bool,
    directives: &ResponseDirectives,
    policy: &CachePolicy,
) -> Result<(), NotStorable> {
    let shared = directives.must_revalidate || directives.public || directives.s_maxage.is_some();
    if is_authorized && !shared && !policy.ignore_authentication {
        return Err(NotStorable::Authorization);
    }
    Ok(())
}

fn refuse_cookies(
    exchange: &Exchange<'_>,
    judged: &Storable,
    policy: &CachePolicy,
) -> Result<(), NotStorable> {
    let sets = exchange.response.contains_key(SET_COOKIE);
    if !sets && !exchange.request.contains_key(COOKIE) {
        return Ok(());
    }
    let is_text = has_type(exchange.response, b"text/");
    let allowed = match policy.cookies {
        CookieRule::Nothing => false,
        CookieRule::Anything => true,
        CookieRule::Images => has_type(exchange.response, b"image/"),
        CookieRule::NotText => !is_text,
        CookieRule::NotTextUnlessPublic => !is_text || !sets || judged.directives.public,
    };
    if allowed || policy.ttl.is_some() {
        Ok(())
    } else {
        Err(NotStorable::Cookie)
    }
}

fn has_type(response: &HeaderMap, prefix: &[u8]) -> bool {
    let value = response
        .get(CONTENT_TYPE)
        .map(|v| v.as_bytes().trim_ascii());
    value
        .and_then(|v| v.get(..prefix.len()))
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn dropped_fields(directives: &ResponseDirectives, policy: &CachePolicy) -> Vec<HeaderName> {
    let named = directives.no_cache.fields().iter();
    let mut dropped: Vec<_> = named.chain(directives.private.fields()).cloned().collect();
    if policy.set_cookie == SetCookiePolicy::Strip && !directives.public {
        dropped.push(SET_COOKIE);
    }
    dropped
}

/// Whether storing is of any use: it will be fresh, or can be validated, or may
/// be served stale by its own word.
fn is_reusable(judged: &Storable, response: &HeaderMap, times: Times) -> bool {
    let directives = &judged.directives;
    judged.lifetime.secs > judged.age_at_receipt && !directives.no_cache.is_whole()
        || response.contains_key(ETAG)
        || date::field(response, &LAST_MODIFIED, times.response).is_some()
        || directives
            .stale_while_revalidate
            .is_some_and(|secs| secs > 0)
        || directives.stale_if_error.is_some_and(|secs| secs > 0)
}

/// As ATS's `cache_urls_that_look_dynamic`.
fn looks_dynamic(url: &RequestUrl) -> bool {
    let path = url.path();
    let lower = path.to_ascii_lowercase();
    url.query().is_some() || path.contains(';') || lower.contains("cgi") || lower.contains(".asp")
}

#[cfg(test)]
mod tests;
