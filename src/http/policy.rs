//! What an operator may change about storing and reuse, as plain options.
//!
//! The proxy fills this from the records named at each field; the default is
//! RFC 9111's side where ATS's default leaves it.

use super::early::EarlyRefresh;
use super::negotiation::Negotiation;
use super::range::Several;
use ::http::HeaderName;

/// What becomes of a response with Set-Cookie
/// (`proxy.config.http.cache.set_cookie`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetCookiePolicy {
    /// Stored when its freshness is explicit; Set-Cookie itself is not stored
    /// unless the response says `public`.
    Strip,
    /// Stored when its freshness is explicit, with Set-Cookie.
    Keep,
    /// Never stored.
    NoStore,
}

/// Which responses to requests with Cookie, or with Set-Cookie of their own,
/// may be stored (`proxy.config.http.cache.cache_responses_to_cookies`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieRule {
    /// 0: none.
    Nothing,
    /// 1: any.
    Anything,
    /// 2: images only.
    Images,
    /// 3: all but `text/*`.
    NotText,
    /// 4: all but `text/*`, and text without Set-Cookie or with `public`.
    NotTextUnlessPublic,
}

/// What a 200 must carry to be stored
/// (`proxy.config.http.cache.required_headers`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredHeaders {
    /// 0: nothing.
    Nothing,
    /// 1: Last-Modified or an explicit lifetime.
    LifetimeOrLastModified,
    /// 2: an explicit lifetime.
    Lifetime,
}

/// When a stored response counts as stale
/// (`proxy.config.http.cache.when_to_revalidate`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenToRevalidate {
    /// 0: by its lifetime, explicit or heuristic.
    Expired,
    /// 1: also when its lifetime is heuristic.
    HeuristicIsStale,
    /// 2: always.
    Always,
    /// 3: never, as long as a directive does not demand it.
    Never,
    /// 4: by its lifetime, and when the client sent If-Modified-Since.
    ExpiredOrClientIms,
}

/// How Accept-Encoding is rewritten before it selects an alternate or goes to
/// the origin (`proxy.config.http.normalize_ae`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormalizeAcceptEncoding {
    /// 0: not at all.
    Verbatim,
    /// 1: `gzip`, or no field.
    Gzip,
    /// 2: `br`, else as [`Self::Gzip`].
    Brotli,
    /// 3: `br, gzip` when both, else as [`Self::Brotli`].
    BrotliAndGzip,
    /// 4: `zstd`, else as [`Self::Brotli`].
    Zstd,
    /// 5: all that are taken of `zstd, br, gzip`.
    Each,
}

/// The records that bear on storing and reuse. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct CachePolicy {
    /// `http.cache.http`: false stores nothing and looks nothing up.
    pub enabled: bool,
    /// `http.cache.ignore_client_no_cache`: in reverse mode, a client's
    /// no-cache is ignored.
    pub ignore_client_no_cache: bool,
    /// A rule of cache.config says so of clients' no-cache: it is ignored in
    /// forward mode too.
    pub never_client_no_cache: bool,
    /// `http.cache.ims_on_client_no_cache`: an honoured client no-cache
    /// revalidates instead of fetching anew.
    pub ims_on_client_no_cache: bool,
    /// `http.cache.ignore_client_cc_max_age`: in reverse mode, a client's
    /// max-age is ignored.
    pub ignore_client_max_age: bool,
    /// `http.cache.ignore_server_no_cache`: no-cache and no-store of the origin
    /// are ignored.
    pub ignore_server_no_cache: bool,
    /// `http.cache.post_method`: POST with its content is looked up and stored.
    pub post: bool,
    /// `http.cache.ignore_authentication`: Authorization and WWW-Authenticate
    /// do not matter.
    pub ignore_authentication: bool,
    /// `http.cache.cache_responses_to_cookies`.
    pub cookies: CookieRule,
    /// `http.cache.set_cookie`.
    pub set_cookie: SetCookiePolicy,
    /// `http.cache.cache_urls_that_look_dynamic`: false looks up and stores
    /// nothing for URLs with `?`, `;`, `cgi` or an `.asp` path.
    pub cache_dynamic: bool,
    /// `http.cache.required_headers`.
    pub required_headers: RequiredHeaders,
    /// `http.cache.when_to_revalidate`.
    pub when_to_revalidate: WhenToRevalidate,
    /// `http.cache.fuzz.*`: refreshes before the expiry.
    pub early: EarlyRefresh,
    /// `http.cache.heuristic_min_lifetime`: the floor of the heuristic
    /// lifetime; without a Last-Modified it is the lifetime.
    pub heuristic_min: u64,
    /// `http.cache.heuristic_max_lifetime`.
    pub heuristic_max: u64,
    /// `http.cache.heuristic_lm_factor`, of Date − Last-Modified.
    pub heuristic_lm_factor: f64,
    /// `http.cache.guaranteed_min_lifetime`: the floor of every lifetime.
    pub guaranteed_min: u64,
    /// `http.cache.guaranteed_max_lifetime`: the cap of every lifetime.
    pub guaranteed_max: u64,
    /// `http.cache.max_stale_age`: how long past its lifetime a response may be
    /// served when the origin fails and the response itself names no window.
    pub max_stale_age: u64,
    /// `http.negative_revalidating_enabled`: whether that happens at all.
    pub stale_on_error: bool,
    /// `http.negative_revalidating_lifetime`: how long past its lifetime a
    /// response may be served in place of an error response.
    pub stale_on_status_age: u64,
    /// `http.negative_revalidating_list`: statuses that count as failures.
    pub stale_on_error_statuses: Vec<u16>,
    /// `http.negative_caching_list` with `http.negative_caching_lifetime`:
    /// status and lifetime of errors without an explicit one; empty is off. The
    /// list may give a status a lifetime of its own.
    pub negative: Vec<(u16, u64)>,
    /// `http.cache.range.lookup`: ranges are served from whole objects.
    pub range_lookup: bool,
    /// `http.allow_multi_range`.
    pub several_ranges: Several,
    /// `http.cache.range.write`: a Range that misses fetches the whole object.
    pub range_write: bool,
    /// `http.cache.targeted_cache_control_headers`: fields that take the place of
    /// Cache-Control and Expires, the first that holds counts (RFC 9213).
    pub targeted: Vec<HeaderName>,
    /// `ttl-in-cache` of cache.config: the lifetime from the receipt on,
    /// whatever the response says of storing and reuse.
    pub ttl: Option<u64>,
    /// `revalidate` of cache.config: the cap of every lifetime, for what is
    /// stored already too.
    pub revalidate_after: Option<u64>,
    /// `pin-in-cache` of cache.config, where `cache.permit.pinning` lets it:
    /// how long what is stored is kept at least.
    pub pin: Option<u64>,
    /// `http.cache.ignore_accept*_mismatch`.
    pub negotiation: Negotiation,
    /// `http.normalize_ae`.
    pub normalize_accept_encoding: NormalizeAcceptEncoding,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            ignore_client_no_cache: true,
            never_client_no_cache: false,
            ims_on_client_no_cache: true,
            ignore_client_max_age: true,
            ignore_server_no_cache: false,
            post: false,
            ignore_authentication: false,
            cookies: CookieRule::Anything,
            set_cookie: SetCookiePolicy::Strip,
            cache_dynamic: true,
            required_headers: RequiredHeaders::Nothing,
            when_to_revalidate: WhenToRevalidate::Expired,
            early: EarlyRefresh::default(),
            heuristic_min: 0,
            heuristic_max: 86_400,
            heuristic_lm_factor: 0.10,
            guaranteed_min: 0,
            guaranteed_max: 31_536_000,
            max_stale_age: 86_400,
            stale_on_error: true,
            stale_on_status_age: 86_400,
            stale_on_error_statuses: vec![500, 502, 503, 504],
            negative: Vec::new(),
            range_lookup: true,
            several_ranges: Several::Served,
            range_write: false,
            targeted: ["strata-cache-control", "cdn-cache-control"]
                .map(HeaderName::from_static)
                .into(),
            ttl: None,
            revalidate_after: None,
            pin: None,
            negotiation: Negotiation::default(),
            normalize_accept_encoding: NormalizeAcceptEncoding::Gzip,
        }
    }
}

impl CachePolicy {
    /// The lifetime that negative caching gives to `status`, in seconds.
    #[must_use]
    pub fn negative_lifetime(&self, status: u16) -> Option<u64> {
        let row = self.negative.iter().find(|(code, _)| *code == status);
        row.map(|(_, lifetime)| *lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_lifetimes_are_looked_up_by_status() {
        let policy = CachePolicy {
            negative: vec![(404, 10), (502, 20)],
            ..CachePolicy::default()
        };
        assert_eq!(policy.negative_lifetime(502), Some(20));
        assert_eq!(policy.negative_lifetime(503), None);
        assert_eq!(CachePolicy::default().negative_lifetime(404), None);
    }
}
