//! The records that bear on origins.

use crate::config::records::Records;
use crate::proxy::settings::{count, limit, seconds};
use crate::proxy::tls::OriginTls;
use std::sync::Arc;
use std::time::Duration;

/// Limits and timeouts of the origin side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginOptions {
    /// Wait for one TCP connection (`http.connect_attempts_timeout`).
    pub connect_timeout: Duration,
    /// Connections tried beyond the first (`http.connect_attempts_max_retries`).
    pub connect_retries: usize,
    /// Those while all addresses are down
    /// (`http.connect_attempts_max_retries_down_server`).
    pub down_retries: usize,
    /// Attempts at an address before the next one
    /// (`http.connect_attempts_rr_retries`).
    pub same_tries: usize,
    /// How long an address is down (`http.down_server.cache_time`).
    pub down_time: Duration,
    /// Longest silence (`http.transaction_no_activity_timeout_out`).
    pub no_activity: Duration,
    /// Longest exchange, `None` for any length
    /// (`http.transaction_active_timeout_out`).
    pub active: Option<Duration>,
    /// Keep connections (`http.keep_alive_enabled_out`).
    pub keep_alive: bool,
    /// Keep and reuse those of requests with bodies (`http.keep_alive_post_out`).
    pub keep_alive_post: bool,
    /// How long one may be idle (`http.keep_alive_no_activity_timeout_out`).
    pub idle_timeout: Duration,
    /// Connections to one server over all threads, 0 for any number
    /// (`http.per_server.connection.max`).
    pub per_server_max: usize,
    /// Connections to all servers, 0 for any number
    /// (`http.server_max_connections`).
    pub total_max: usize,
    /// The largest response head, in bytes (`http.response_header_max_size`).
    pub head_bytes_max: usize,
    /// Requests on one HTTP/2 connection at once
    /// (`http2.max_concurrent_streams_out`).
    pub streams_max: usize,
    /// Bytes of a response in flight, an HTTP/2 stream
    /// (`http2.initial_window_size_out`).
    pub stream_window: u32,
    /// Whether servers of `http` speak HTTP/2 unasked
    /// (`http2.prior_knowledge_out`).
    pub prior_knowledge: bool,
    /// TLS with origins; without, those of https are refused.
    pub tls: Option<Arc<OriginTls>>,
}

impl Default for OriginOptions {
    fn default() -> Self {
        Self::from_records(&Records::default())
    }
}

impl OriginOptions {
    /// The options that `records` say.
    #[must_use]
    pub fn from_records(records: &Records) -> Self {
        let active = seconds(records.http_transaction_active_timeout_out);
        Self {
            connect_timeout: seconds(records.http_connect_attempts_timeout),
            connect_retries: number(records.http_connect_attempts_max_retries),
            down_retries: number(records.http_connect_attempts_max_retries_down_server),
            same_tries: number(records.http_connect_attempts_rr_retries),
            down_time: seconds(records.http_down_server_cache_time),
            no_activity: limit(records.http_transaction_no_activity_timeout_out),
            active: (!active.is_zero()).then_some(active),
            keep_alive: records.http_keep_alive_enabled_out != 0,
            keep_alive_post: records.http_keep_alive_post_out != 0,
            idle_timeout: limit(records.http_keep_alive_no_activity_timeout_out),
            per_server_max: number(records.http_per_server_connection_max),
            total_max: number(records.http_server_max_connections),
            head_bytes_max: number(records.http_response_header_max_size),
            streams_max: number(records.http2_max_concurrent_streams_out),
            stream_window: u32::try_from(records.http2_initial_window_size_out).unwrap_or(65_535),
            prior_knowledge: records.http2_prior_knowledge_out != 0,
            tls: None,
        }
    }
}

fn number(value: i64) -> usize {
    usize::try_from(count(value)).unwrap_or(usize::MAX)
}
