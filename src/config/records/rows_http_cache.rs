//! Rows from `http.accept_no_activity_timeout` to `http.cache_status_allow`: what HTTP lets into the cache and out of it.

/// Adds this file's rows to those before and hands all to the next macro.
macro_rules! rows_http_cache {
    ($next:ident $($more:ident)* ; $($before:tt)*) => { $next! { $($more)* ; $($before)*
/// Seconds a client may take from its connection to its first byte; 0 is no limit.
http_accept_no_activity_timeout: int = 120, "proxy.config.http.accept_no_activity_timeout", SECONDS, Reload, Global, Honoured;
/// 1 goes on for a client that has ended its side, for it may still read; 0 takes it as gone while its response is being had.
http_allow_half_open: int = 1, "proxy.config.http.allow_half_open", FLAG, Reload, Early, Honoured;
/// Requests for several ranges: 1 are answered by parts (multipart/byteranges), 0 get the whole, 2 get 416.
http_allow_multi_range: int = 1, "proxy.config.http.allow_multi_range", between(0, 2), Reload, Rule, Honoured;
/// Seconds a fill goes on after its client has left; 0 is without limit.
http_background_fill_active_timeout: int = 0, "proxy.config.http.background_fill_active_timeout", SECONDS, Reload, Rule, Honoured;
/// Part of the body that must have come for a fill to go on without its client.
http_background_fill_completed_threshold: float = 0.0, "proxy.config.http.background_fill_completed_threshold", ratio(0.0, 1.0), Reload, Rule, Honoured;
/// Responses to requests with cookies: 0 none is stored, 1 any type, 2 only images, 3 all but text, 4 as 3, and text without Set-Cookie or with `public`.
http_cache_cache_responses_to_cookies: int = 1, "proxy.config.http.cache.cache_responses_to_cookies", between(0, 4), Reload, Rule, Honoured;
/// 0 stores nothing for URLs that look dynamic.
http_cache_cache_urls_that_look_dynamic: int = 1, "proxy.config.http.cache.cache_urls_that_look_dynamic", FLAG, Reload, Rule, Honoured;
/// Seconds of that window for the shortest lifetimes; it doubles with each `fuzz.time` that a lifetime is longer. 0 gives all of them `fuzz.time`.
http_cache_fuzz_min_time: int = 0, "proxy.config.http.cache.fuzz.min_time", SECONDS, Reload, Global, Honoured;
/// Chance that a request within that window has what it is served refreshed meanwhile.
http_cache_fuzz_probability: float = 0.0, "proxy.config.http.cache.fuzz.probability", ratio(0.0, 1.0), Reload, Global, Honoured;
/// Seconds before the expiry within which requests may have a fresh response refreshed; 0 is never.
http_cache_fuzz_time: int = 0, "proxy.config.http.cache.fuzz.time", SECONDS, Reload, Global, Honoured;
/// A number mixed into every key; another number is an empty cache. -1 is none.
http_cache_generation: int = -1, "proxy.config.http.cache.generation", at_least(-1), Reload, Rule, Honoured;
/// Seconds that no lifetime exceeds, explicit ones included.
http_cache_guaranteed_max_lifetime: int = 31_536_000, "proxy.config.http.cache.guaranteed_max_lifetime", at_least(0), Reload, Rule, Honoured;
/// Seconds that no lifetime falls below.
http_cache_guaranteed_min_lifetime: int = 0, "proxy.config.http.cache.guaranteed_min_lifetime", at_least(0), Reload, Rule, Honoured;
/// Part of Date - Last-Modified taken as a heuristic lifetime (RFC 9111 4.2.2).
http_cache_heuristic_lm_factor: float = 0.10, "proxy.config.http.cache.heuristic_lm_factor", ratio(0.0, 1.0), Reload, Rule, Honoured;
/// Seconds that no heuristic lifetime exceeds.
http_cache_heuristic_max_lifetime: int = 86_400, "proxy.config.http.cache.heuristic_max_lifetime", at_least(0), Reload, Rule, Honoured;
/// Seconds of the shortest heuristic lifetime; without Last-Modified it is the lifetime.
http_cache_heuristic_min_lifetime: int = 0, "proxy.config.http.cache.heuristic_min_lifetime", at_least(0), Reload, Rule, Honoured;
/// 0 turns the cache off for HTTP.
http_cache_http: int = 1, "proxy.config.http.cache.http", FLAG, Reload, Rule, Honoured;
/// A stored response in another charset than the request accepts: 0 it is none for that request, 1 it is if Vary selects it, 2 as 0 where it has Vary and as 1 else; a field that Vary names is not looked at. What is fetched then takes its place.
http_cache_ignore_accept_charset_mismatch: int = 1, "proxy.config.http.cache.ignore_accept_charset_mismatch", between(0, 2), Reload, Rule, Honoured;
/// A stored response in another coding than the request accepts: 0 it is none for that request, 1 it is if Vary selects it, 2 as 0 where it has Vary and as 1 else; a field that Vary names is not looked at. What is fetched then takes its place.
http_cache_ignore_accept_encoding_mismatch: int = 1, "proxy.config.http.cache.ignore_accept_encoding_mismatch", between(0, 2), Reload, Rule, Honoured;
/// A stored response in another language than the request accepts: 0 it is none for that request, 1 it is if Vary selects it, 2 as 0 where it has Vary and as 1 else; a field that Vary names is not looked at. What is fetched then takes its place.
http_cache_ignore_accept_language_mismatch: int = 1, "proxy.config.http.cache.ignore_accept_language_mismatch", between(0, 2), Reload, Rule, Honoured;
/// A stored response of another type than the request accepts: 0 it is none for that request, 1 it is if Vary selects it, 2 as 0 where it has Vary and as 1 else; a field that Vary names is not looked at. What is fetched then takes its place.
http_cache_ignore_accept_mismatch: int = 1, "proxy.config.http.cache.ignore_accept_mismatch", between(0, 2), Reload, Rule, Honoured;
/// 1 stores responses to requests with Authorization and with WWW-Authenticate as any other.
http_cache_ignore_authentication: int = 0, "proxy.config.http.cache.ignore_authentication", FLAG, Reload, Global, Honoured;
/// 1 ignores `max-age` of requests.
http_cache_ignore_client_cc_max_age: int = 1, "proxy.config.http.cache.ignore_client_cc_max_age", FLAG, Reload, Rule, Honoured;
/// 1 ignores `no-cache` of requests.
http_cache_ignore_client_no_cache: int = 1, "proxy.config.http.cache.ignore_client_no_cache", FLAG, Reload, Rule, Honoured;
/// 1 leaves the query out of the key; the origin still gets it.
http_cache_ignore_query: int = 0, "proxy.config.http.cache.ignore_query", FLAG, Reload, Rule, Honoured;
/// 1 ignores `no-cache` and `no-store` of responses.
http_cache_ignore_server_no_cache: int = 0, "proxy.config.http.cache.ignore_server_no_cache", FLAG, Reload, Rule, Honoured;
/// 1 makes a `no-cache` of a request that is heeded a revalidation instead of a new fetch.
http_cache_ims_on_client_no_cache: int = 1, "proxy.config.http.cache.ims_on_client_no_cache", FLAG, Reload, Rule, Honoured;
/// How many times `open_read_retry_time` a request waits for the head of what another one fetches, before it asks the origin itself; -1 waits as long as that one.
http_cache_max_open_read_retries: int = -1, "proxy.config.http.cache.max_open_read_retries", between(-1, 1_000_000), Reload, Global, Honoured;
/// How many times `open_read_retry_time` a request that may not follow another one's fetch waits for its end, before it asks the origin itself or is answered 502 (`open_write_fail_action` 0 to 4).
http_cache_max_open_write_retries: int = 1, "proxy.config.http.cache.max_open_write_retries", between(0, 1_000_000), Reload, Rule, Honoured;
/// Seconds after its expiry up to which a response may be served while the origin fails.
http_cache_max_stale_age: int = 86_400, "proxy.config.http.cache.max_stale_age", at_least(0), Reload, Rule, Honoured;
/// Milliseconds of one such time.
http_cache_open_read_retry_time: int = 10, "proxy.config.http.cache.open_read_retry_time", between(0, 60_000), Reload, Global, Honoured;
/// A request for what another one fetches: 0 goes to the origin and stores nothing, 1 answers a miss with 502, 2 serves stale, 3 is 1 and 2, 4 answers 502, 5 follows that fetch, 6 is 5 and 2.
http_cache_open_write_fail_action: int = 5, "proxy.config.http.cache.open_write_fail_action", between(0, 6), Reload, Rule, Honoured;
/// 1 stores responses to POST that have an explicit lifetime, and answers from them who sends the same content of at most 64 KiB to the same URL; such a POST takes nothing out of the cache. ATS has one response for all contents.
http_cache_post_method: int = 0, "proxy.config.http.cache.post_method", FLAG, Reload, Rule, Honoured;
/// 1 answers Range requests from a stored whole response.
http_cache_range_lookup: int = 1, "proxy.config.http.cache.range.lookup", FLAG, Reload, Global, Honoured;
/// 1 fetches the whole object at a Range request that misses.
http_cache_range_write: int = 0, "proxy.config.http.cache.range.write", FLAG, Reload, Global, Honoured;
/// What a 200 needs to be stored: 0 nothing, 1 Last-Modified or a lifetime, 2 an explicit lifetime.
http_cache_required_headers: int = 0, "proxy.config.http.cache.required_headers", between(0, 2), Reload, Rule, Honoured;
/// A Set-Cookie of a stored response: `strip` does not replay it, `keep` does, `no-store` does not store the response.
http_cache_set_cookie: text = "strip", "proxy.config.http.cache.set_cookie", one_of(&["strip", "keep", "no-store"]), Reload, Rule, Honoured;
/// Response fields, separated by blanks, that take the place of Cache-Control and Expires (RFC 9213): the first that is there and holds.
http_cache_targeted_cache_control_headers: text = "Strata-Cache-Control CDN-Cache-Control", "proxy.config.http.cache.targeted_cache_control_headers", form(Syntax::Fields), Reload, Rule, Honoured;
/// Revalidation: 0 when stale, 1 also when fresh by heuristics only, 2 always, 3 never, 4 as 0 and at If-Modified-Since.
http_cache_when_to_revalidate: int = 0, "proxy.config.http.cache.when_to_revalidate", between(0, 4), Reload, Rule, Honoured;
/// 1 adds Cache-Status (RFC 9211) to responses for the clients of `http.cache_status_allow`; `stored` there says that storing has begun.
http_cache_status: int = 1, "proxy.config.http.cache_status", FLAG, Reload, Rule, Honoured;
/// Networks whose clients are told Cache-Status, separated by blanks: those that look after the cache.
http_cache_status_allow: text = "127.0.0.0/8 ::1", "proxy.config.http.cache_status_allow", form(Syntax::Networks), Reload, Global, Honoured;
    } };
}
