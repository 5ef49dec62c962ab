//! Records as the options of the parts: the one place where their names meet.

use super::h1::ConnOptions;
use super::h2::{FrameLimits, H2Options};
use crate::config::records::Records;
use crate::http::early::EarlyRefresh;
use crate::http::head::HeadLimits;
use crate::http::negotiation::{Mismatch, Negotiation};
use crate::http::policy::{
    CachePolicy, CookieRule, NormalizeAcceptEncoding, RequiredHeaders, SetCookiePolicy,
    WhenToRevalidate,
};
use crate::http::range::Several;
use crate::http::upgrade;
use http::HeaderName;
use std::time::Duration;

/// Longer than any connection lasts, and within what timers take.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The bounds of a client connection.
#[must_use]
pub fn conn_options(records: &Records) -> ConnOptions {
    let bytes = size(records.http_request_header_max_size);
    ConnOptions {
        head: HeadLimits {
            bytes,
            ..HeadLimits::default()
        },
        first_byte: limit(records.http_accept_no_activity_timeout),
        idle: limit(records.http_keep_alive_no_activity_timeout_in),
        stall: limit(records.http_transaction_no_activity_timeout_in),
        keep_alive: records.http_keep_alive_enabled_in != 0,
        half_open: records.http_allow_half_open != 0,
        ..ConnOptions::default()
    }
}

/// The bounds of an HTTP/2 connection.
#[must_use]
pub fn h2_options(records: &Records) -> H2Options {
    H2Options {
        prior_knowledge: records.http2_prior_knowledge_in != 0,
        websocket: upgrade::lets_websockets(&records.http_upgrade_protocols),
        streams: word(records.http2_max_concurrent_streams_in),
        window: word(records.http2_initial_window_size_in),
        frame: word(records.http2_max_frame_size),
        table: word(records.http2_header_table_size),
        header_list: word(records.http2_max_header_list_size),
        first_byte: limit(records.http2_accept_no_activity_timeout),
        head: limit(records.http2_incomplete_header_timeout_in),
        idle: limit(records.http2_no_activity_timeout_in),
        frames: FrameLimits {
            settings_frames: rate(records.http2_max_settings_frames_per_minute),
            settings: rate(records.http2_max_settings_per_minute),
            ping: rate(records.http2_max_ping_frames_per_minute),
            priority: rate(records.http2_max_priority_frames_per_minute),
            rst_stream: rate(records.http2_max_rst_stream_frames_per_minute),
            provoked: rate(records.http2_max_rst_stream_frames_per_minute),
            continuation: rate(records.http2_max_continuation_frames_per_minute),
            empty: rate(records.http2_max_empty_frames_per_minute),
            window_update: records.http2_min_avg_window_update,
        },
    }
}

/// How many a minute; below 0 there is no limit.
fn rate(value: i64) -> Option<u64> {
    u64::try_from(value).ok()
}

/// The table of records has checked that it fits.
fn word(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The rules of storing and reuse.
#[must_use]
pub fn cache_policy(records: &Records) -> CachePolicy {
    CachePolicy {
        enabled: records.http_cache_http != 0,
        ignore_client_no_cache: records.http_cache_ignore_client_no_cache != 0,
        never_client_no_cache: false,
        ims_on_client_no_cache: records.http_cache_ims_on_client_no_cache != 0,
        ignore_client_max_age: records.http_cache_ignore_client_cc_max_age != 0,
        ignore_server_no_cache: records.http_cache_ignore_server_no_cache != 0,
        post: records.http_cache_post_method != 0,
        ignore_authentication: records.http_cache_ignore_authentication != 0,
        cookies: cookie_rule(records.http_cache_cache_responses_to_cookies),
        set_cookie: set_cookie(&records.http_cache_set_cookie),
        cache_dynamic: records.http_cache_cache_urls_that_look_dynamic != 0,
        required_headers: required_headers(records.http_cache_required_headers),
        when_to_revalidate: when_to_revalidate(records.http_cache_when_to_revalidate),
        early: EarlyRefresh {
            time: count(records.http_cache_fuzz_time),
            min_time: count(records.http_cache_fuzz_min_time),
            probability: records.http_cache_fuzz_probability,
        },
        heuristic_min: count(records.http_cache_heuristic_min_lifetime),
        heuristic_max: count(records.http_cache_heuristic_max_lifetime),
        heuristic_lm_factor: records.http_cache_heuristic_lm_factor,
        guaranteed_min: count(records.http_cache_guaranteed_min_lifetime),
        guaranteed_max: count(records.http_cache_guaranteed_max_lifetime),
        max_stale_age: count(records.http_cache_max_stale_age),
        stale_on_error: records.http_negative_revalidating_enabled != 0,
        stale_on_status_age: count(records.http_negative_revalidating_lifetime),
        stale_on_error_statuses: statuses(&records.http_negative_revalidating_list),
        negative: negative(records),
        range_lookup: records.http_cache_range_lookup != 0,
        several_ranges: several_ranges(records.http_allow_multi_range),
        range_write: records.http_cache_range_write != 0,
        targeted: field_names(&records.http_cache_targeted_cache_control_headers),
        ttl: None,
        revalidate_after: None,
        pin: None,
        negotiation: negotiation(records),
        normalize_accept_encoding: normalize(records.http_normalize_ae),
    }
}

fn negotiation(records: &Records) -> Negotiation {
    Negotiation {
        media: mismatch(records.http_cache_ignore_accept_mismatch),
        charset: mismatch(records.http_cache_ignore_accept_charset_mismatch),
        encoding: mismatch(records.http_cache_ignore_accept_encoding_mismatch),
        language: mismatch(records.http_cache_ignore_accept_language_mismatch),
    }
}

const fn mismatch(value: i64) -> Mismatch {
    match value {
        0 => Mismatch::Counts,
        2 => Mismatch::CountsWithVary,
        _ => Mismatch::Ignored,
    }
}

pub(super) fn cookie_rule(value: i64) -> CookieRule {
    match value {
        0 => CookieRule::Nothing,
        2 => CookieRule::Images,
        3 => CookieRule::NotText,
        4 => CookieRule::NotTextUnlessPublic,
        _ => CookieRule::Anything,
    }
}

fn set_cookie(value: &str) -> SetCookiePolicy {
    match value {
        "keep" => SetCookiePolicy::Keep,
        "no-store" => SetCookiePolicy::NoStore,
        _ => SetCookiePolicy::Strip,
    }
}

fn several_ranges(value: i64) -> Several {
    match value {
        0 => Several::Ignored,
        2 => Several::Refused,
        _ => Several::Served,
    }
}

fn required_headers(value: i64) -> RequiredHeaders {
    match value {
        1 => RequiredHeaders::LifetimeOrLastModified,
        2 => RequiredHeaders::Lifetime,
        _ => RequiredHeaders::Nothing,
    }
}

fn when_to_revalidate(value: i64) -> WhenToRevalidate {
    match value {
        1 => WhenToRevalidate::HeuristicIsStale,
        2 => WhenToRevalidate::Always,
        3 => WhenToRevalidate::Never,
        4 => WhenToRevalidate::ExpiredOrClientIms,
        _ => WhenToRevalidate::Expired,
    }
}

fn normalize(value: i64) -> NormalizeAcceptEncoding {
    match value {
        1 => NormalizeAcceptEncoding::Gzip,
        2 => NormalizeAcceptEncoding::Brotli,
        3 => NormalizeAcceptEncoding::BrotliAndGzip,
        4 => NormalizeAcceptEncoding::Zstd,
        5 => NormalizeAcceptEncoding::Each,
        _ => NormalizeAcceptEncoding::Verbatim,
    }
}

fn negative(records: &Records) -> Vec<(u16, u64)> {
    if records.http_negative_caching_enabled == 0 {
        return Vec::new();
    }
    let lifetime = count(records.http_negative_caching_lifetime);
    let rows = words(&records.http_negative_caching_list);
    rows.filter_map(|row| negative_row(row, lifetime)).collect()
}

/// `404`, or `404=60` for a lifetime of its own.
fn negative_row(row: &str, lifetime: u64) -> Option<(u16, u64)> {
    let Some((status, own)) = row.split_once('=') else {
        return Some((row.parse().ok()?, lifetime));
    };
    Some((status.parse().ok()?, own.parse().ok()?))
}

fn statuses(text: &str) -> Vec<u16> {
    words(text).filter_map(|word| word.parse().ok()).collect()
}

fn field_names(text: &str) -> Vec<HeaderName> {
    words(text).filter_map(|word| word.parse().ok()).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\t', ',']).filter(|word| !word.is_empty())
}

/// A record in seconds; a negative one is none.
pub(super) fn seconds(value: i64) -> Duration {
    Duration::from_secs(count(value))
}

/// A record that limits a time in seconds, where 0 is no limit.
pub(super) fn limit(value: i64) -> Duration {
    match count(value) {
        0 => FOREVER,
        seconds => Duration::from_secs(seconds),
    }
}

/// A record that counts; a negative one counts nothing.
pub(super) fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn size(value: i64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_records_give_the_default_policy() {
        let records = Records::default();
        let expected = CachePolicy {
            normalize_accept_encoding: normalize(records.http_normalize_ae),
            range_lookup: records.http_cache_range_lookup != 0,
            ..CachePolicy::default()
        };
        assert_eq!(cache_policy(&records), expected);
    }

    #[test]
    fn negative_caching_gives_its_lifetime_to_its_statuses_only_when_enabled() {
        let mut records = Records::default();
        assert_eq!(cache_policy(&records).negative, []);
        records.http_negative_caching_enabled = 1;
        records.http_negative_caching_list = "404 502".into();
        records.http_negative_caching_lifetime = 7;
        assert_eq!(cache_policy(&records).negative, [(404, 7), (502, 7)]);
        records.http_negative_caching_list = "404=60 410, 502=0".into();
        let own = [(404, 60), (410, 7), (502, 0)];
        assert_eq!(cache_policy(&records).negative, own);
    }
}
