//! The table of records that show in an exchange or two.

use super::{Effect, Seen, faults, faults_by_rule};
use strata::config::records::{Scope, find};

const GET: &str = "GET /x";
const COOKIE: &str = "GET /x\r\nCookie: a=b";
const NO_CACHE: &str = "GET /x\r\nCache-Control: no-cache";
const MAX_AGE_0: &str = "GET /x\r\nCache-Control: max-age=0";
const CREDENTIALS: &str = "GET /x\r\nAuthorization: Basic YTpi";
const RANGE: &str = "GET /x\r\nRange: bytes=0-1";
const RANGES: &str = "GET /x\r\nRange: bytes=0-0,1-1";
const POST: &str = "POST /x\r\nContent-Length: 0";
const OWN_VIA: &str = "GET /x\r\nVia: 1.1 x[0123-test] (x)";
const ENCODINGS: &str = "GET /x\r\nAccept-Encoding: br, gzip";
const CLIENT_IP: &str = "GET /x\r\nClient-ip: 192.0.2.1";
const ACCEPTS_HTML: &str = "GET /x\r\nAccept: text/html";
const ACCEPTS_PNG: &str = "GET /x\r\nAccept: image/png";
const LONG_FIELD: &str = "GET /x\r\nX: {long}";

const PLAIN: &str = "200 OK";
const FRESH: &str = "200 OK\r\nCache-Control: max-age=60";
const NO_STORE: &str = "200 OK\r\nCache-Control: no-store, max-age=60";
const AGED: &str = "200 OK\r\nCache-Control: max-age=60\r\nAge: 10";
const TAGGED: &str = "200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"";
const STALE: &str = "200 OK\r\nCache-Control: max-age=60\r\nAge: 100\r\nETag: \"a\"";
const OLD: &str = "200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
const SETS_COOKIE: &str = "200 OK\r\nCache-Control: max-age=60\r\nSet-Cookie: a=b";
const NAMED: &str = "200 OK\r\nServer: origin";
const HTML: &str = "200 OK\r\nCache-Control: max-age=60\r\nContent-Type: text/html";
const HTML_BY_X: &str = "200 OK\r\nCache-Control: max-age=60\r\nContent-Type: text/html\r\nVary: X";
const LONG_HEAD: &str = "200 OK\r\nX: {long}";
const FAILURE: &str = "500 Oops\r\nCache-Control: no-store";

/// Makes an [`Effect`] of each row: records, asks, answers, what is looked at,
/// and that under the default and under the first record's value.
macro_rules! effects {
    ($( $($name:literal = $value:literal),+; $asks:expr, $answers:expr,
        $seen:expr => $by_default:literal, $set:literal; )*) => {
        const EFFECTS: &[Effect] = &[ $( Effect {
            records: &[$(($name, $value)),+],
            asks: &$asks,
            answers: &$answers,
            seen: $seen,
            by_default: $by_default,
            set: $set,
        }, )* ];
    };
}

effects! {
    "http.cache.http" = "0"; [GET, GET], [FRESH], Seen::fetches => "1", "2";
    "http.cache.cache_responses_to_cookies" = "0"; [COOKIE, COOKIE], [FRESH], Seen::fetches => "1", "2";
    "http.cache.cache_urls_that_look_dynamic" = "0"; ["GET /?q=", "GET /?q="], [FRESH], Seen::fetches => "1", "2";
    "http.cache.ignore_query" = "1"; ["GET /?a=1&b=", "GET /?a=2&b="], [FRESH], Seen::fetches => "2", "1";
    "http.cache.guaranteed_max_lifetime" = "10"; [GET, GET], [FRESH], Seen::lifetime => "60", "10";
    "http.cache.guaranteed_min_lifetime" = "100"; [GET, GET], [FRESH], Seen::lifetime => "60", "100";
    "http.cache.heuristic_lm_factor" = "0.0"; [GET, GET], [OLD], Seen::fetches => "1", "2";
    "http.cache.heuristic_max_lifetime" = "50"; [GET, GET], [OLD], Seen::lifetime => "86400", "50";
    "http.cache.heuristic_min_lifetime" = "70"; [GET, GET], [PLAIN], Seen::fetches => "2", "1";
    "http.cache.ignore_accept_mismatch" = "0"; [ACCEPTS_HTML, ACCEPTS_PNG], [HTML], Seen::fetches => "1", "2";
    "http.cache.ignore_accept_mismatch" = "2"; [ACCEPTS_HTML, ACCEPTS_PNG], [HTML_BY_X], Seen::fetches => "1", "2";
    "http.cache.ignore_accept_mismatch" = "0"; [ACCEPTS_HTML, ACCEPTS_HTML], [HTML], Seen::fetches => "1", "1";
    "http.cache.ignore_accept_charset_mismatch" = "0";
        ["GET /x\r\nAccept-Charset: koi8-r", "GET /x\r\nAccept-Charset: big5"],
        ["200 OK\r\nCache-Control: max-age=60\r\nContent-Type: text/html; charset=koi8-r"], Seen::fetches => "1", "2";
    "http.cache.ignore_accept_encoding_mismatch" = "0"; ["GET /x\r\nAccept-Encoding: gzip", GET],
        ["200 OK\r\nCache-Control: max-age=60\r\nContent-Encoding: gzip"], Seen::fetches => "1", "2";
    "http.cache.ignore_accept_language_mismatch" = "0";
        ["GET /x\r\nAccept-Language: de", "GET /x\r\nAccept-Language: fr"],
        ["200 OK\r\nCache-Control: max-age=60\r\nContent-Language: de"], Seen::fetches => "1", "2";
    "http.cache.ignore_authentication" = "1"; [CREDENTIALS, CREDENTIALS], [FRESH], Seen::fetches => "2", "1";
    "http.cache.ignore_client_cc_max_age" = "0"; [GET, MAX_AGE_0], [AGED], Seen::fetches => "1", "2";
    "http.cache.ignore_client_no_cache" = "0"; [GET, NO_CACHE], [FRESH], Seen::fetches => "1", "2";
    "http.cache.ignore_server_no_cache" = "1"; [GET, GET], [NO_STORE], Seen::fetches => "2", "1";
    "http.cache.ims_on_client_no_cache" = "0", "http.cache.ignore_client_no_cache" = "0";
        [GET, NO_CACHE], [TAGGED], |seen| seen.sent("if-none-match") => "\"a\"", "";
    "http.cache.max_stale_age" = "10"; [GET, GET], [STALE, FAILURE], Seen::status => "200", "500";
    "http.allow_multi_range" = "2"; [GET, RANGES], [FRESH], Seen::status => "206", "416";
    "http.cache.post_method" = "1"; [POST, POST], [FRESH], Seen::fetches => "2", "1";
    "http.cache.range.lookup" = "0"; [GET, RANGE], [FRESH], Seen::status => "206", "200";
    "http.cache.range.write" = "1"; [RANGE], [FRESH], |seen| seen.sent("range") => "bytes=0-1", "";
    "http.cache.required_headers" = "2"; [GET, GET], [OLD], Seen::fetches => "1", "2";
    "http.cache.set_cookie" = "keep"; [GET, GET], [SETS_COOKIE], |seen| seen.field("set-cookie") => "", "a=b";
    "http.cache.targeted_cache_control_headers" = "X-Own";
        [GET, GET], ["200 OK\r\nCDN-Cache-Control: max-age=60"], Seen::fetches => "1", "2";
    "http.cache.when_to_revalidate" = "2"; [GET, GET], [FRESH], Seen::fetches => "1", "2";
    "http.cache_status" = "0"; [GET], [FRESH], |seen| seen.has("cache-status") => "true", "false";
    "http.cache_status_allow" = "10.0.0.0/8"; [GET], [FRESH], |seen| seen.has("cache-status") => "true", "false";
    "http.insert_age_in_response" = "0"; [GET, GET], [FRESH], |seen| seen.has("age") => "true", "false";
    "http.insert_client_ip" = "0"; [GET], [PLAIN], |seen| seen.sent("client-ip") => "127.0.0.1", "";
    "http.insert_client_ip" = "1"; [CLIENT_IP], [PLAIN], |seen| seen.sent("client-ip") => "127.0.0.1", "192.0.2.1";
    "http.insert_request_via_str" = "0"; [GET], [PLAIN],
        |seen| seen.sent("via") => "1.1 strata.test[0123-test] (Strata)", "";
    "http.insert_response_via_str" = "0"; [GET], [PLAIN], |seen| seen.has("via") => "true", "false";
    "http.insert_squid_x_forwarded_for" = "0"; [GET], [PLAIN], |seen| seen.sent("x-forwarded-for") => "127.0.0.1", "";
    "http.keep_alive_enabled_in" = "0"; [GET], [PLAIN], |seen| seen.field("connection") => "", "close";
    "http.keep_alive_enabled_out" = "0"; [GET, GET, GET], [PLAIN], Seen::connections => "1", "3";
    "http.keep_alive_post_out" = "0"; [POST, POST, POST], [PLAIN], Seen::connections => "1", "3";
    "http.max_proxy_cycles" = "1"; [OWN_VIA], [PLAIN], Seen::status => "400", "200";
    "http.negative_caching_enabled" = "1"; [GET, GET], ["403 No"], Seen::fetches => "2", "1";
    "http.negative_caching_lifetime" = "7", "http.negative_caching_enabled" = "1";
        [GET, GET], ["403 No"], Seen::lifetime => "1800", "7";
    "http.negative_caching_list" = "404", "http.negative_caching_enabled" = "1";
        [GET, GET], ["403 No"], Seen::fetches => "1", "2";
    "http.negative_revalidating_enabled" = "0"; [GET, GET], [STALE, FAILURE], Seen::status => "200", "500";
    "http.negative_caching_list" = "403=9", "http.negative_caching_enabled" = "1";
        [GET, GET], ["403 No"], Seen::lifetime => "1800", "9";
    "http.negative_revalidating_lifetime" = "10"; [GET, GET], [STALE, FAILURE], Seen::status => "200", "500";
    "http.negative_revalidating_list" = "502"; [GET, GET], [STALE, FAILURE], Seen::status => "200", "500";
    "http.normalize_ae" = "5"; [ENCODINGS], [PLAIN], |seen| seen.sent("accept-encoding") => "gzip", "br, gzip";
    "http.normalize_ae" = "0"; [ENCODINGS], [PLAIN], |seen| seen.sent("accept-encoding") => "gzip", "br, gzip";
    "http.request_header_max_size" = "1024"; [LONG_FIELD], [PLAIN], Seen::status => "200", "431";
    "http.response_header_max_size" = "1024"; [GET], [LONG_HEAD], Seen::status => "200", "502";
    "http.response_server_enabled" = "0"; [GET], [NAMED], |seen| seen.field("server") => "Strata", "origin";
    "http.response_server_str" = "edge"; [GET], [NAMED], |seen| seen.field("server") => "Strata", "edge";
    "reverse_proxy.enabled" = "0"; [GET], [PLAIN], Seen::status => "200", "404";
    "url_remap.pristine_host_hdr" = "1"; [GET], [PLAIN], |seen| (seen.sent("host") == "h").to_string() => "false", "true";
}

#[test]
fn each_record_changes_what_is_exchanged_from_the_reload_on() {
    let faults: Vec<_> = EFFECTS.iter().filter_map(faults).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn each_record_of_a_rule_changes_what_that_rule_takes() {
    let of_a_rule = |effect: &&Effect| {
        let name = format!("proxy.config.{}", effect.records[0].0);
        find(&name).unwrap().scope == Scope::Rule
    };
    let ruled: Vec<_> = EFFECTS.iter().filter(of_a_rule).collect();
    assert!(ruled.len() > 40, "{}", ruled.len());
    let faults: Vec<_> = ruled.into_iter().filter_map(faults_by_rule).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
