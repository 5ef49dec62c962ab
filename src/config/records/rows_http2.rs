//! Rows of `http2`: the limits of HTTP/2 connections.

/// Adds this file's rows to those before and hands all to the next macro.
macro_rules! rows_http2 {
    ($next:ident $($more:ident)* ; $($before:tt)*) => { $next! { $($more)* ; $($before)*
/// Seconds for a connection to become one of HTTP/2; 0 is no limit.
http2_accept_no_activity_timeout: int = 120, "proxy.config.http2.accept_no_activity_timeout", SECONDS, Reload, Global, Honoured;
/// Bytes of the table that a client's fields are decoded by (HPACK).
http2_header_table_size: int = 4096, "proxy.config.http2.header_table_size", between(0, 65_536), Reload, Global, Honoured;
/// Seconds for a head to come to its end, from its first frame on; then its connection is closed, 0 is no limit.
http2_incomplete_header_timeout_in: int = 10, "proxy.config.http2.incomplete_header_timeout_in", SECONDS, Reload, Global, Honoured;
/// Bytes of a request's content in flight, a stream.
http2_initial_window_size_in: int = 65_535, "proxy.config.http2.initial_window_size_in", between(0, 2_147_483_647), Reload, Global, Honoured;
/// Bytes of a response in flight, a stream of an HTTP/2 connection to an origin.
http2_initial_window_size_out: int = 1_048_576, "proxy.config.http2.initial_window_size_out", between(65_535, 2_147_483_647), Reload, Rule, Honoured;
/// HTTP/2 streams a client may have open on a connection.
http2_max_concurrent_streams_in: int = 100, "proxy.config.http2.max_concurrent_streams_in", between(1, 2_147_483_647), Reload, Global, Honoured;
/// Requests at once on one HTTP/2 connection to an origin, if the origin takes as many.
http2_max_concurrent_streams_out: int = 100, "proxy.config.http2.max_concurrent_streams_out", between(1, 1_000_000), Reload, Rule, Honoured;
/// CONTINUATION frames a minute that a connection may send; more close it, -1 is no limit.
http2_max_continuation_frames_per_minute: int = 120, "proxy.config.http2.max_continuation_frames_per_minute", at_least(-1), Reload, Global, Honoured;
/// DATA frames a minute that hold nothing but padding and end nothing; more close the connection. -1 is no limit by the minute: a connection may send 100 in all, whatever the record says.
http2_max_empty_frames_per_minute: int = 60, "proxy.config.http2.max_empty_frames_per_minute", at_least(-1), Reload, Global, Honoured;
/// Bytes that a frame of a client's may hold.
http2_max_frame_size: int = 16_384, "proxy.config.http2.max_frame_size", between(16_384, 16_777_215), Reload, Global, Honoured;
/// Bytes of a request's fields, 32 added for each (RFC 9113 6.5.2); more are answered 431.
http2_max_header_list_size: int = 131_072, "proxy.config.http2.max_header_list_size", between(1024, 16_777_216), Reload, Global, Honoured;
/// PING frames a minute that a connection may send; more close it, -1 is no limit.
http2_max_ping_frames_per_minute: int = 60, "proxy.config.http2.max_ping_frames_per_minute", at_least(-1), Reload, Global, Honoured;
/// PRIORITY frames a minute that a connection may send; more close it, -1 is no limit.
http2_max_priority_frames_per_minute: int = 120, "proxy.config.http2.max_priority_frames_per_minute", at_least(-1), Reload, Global, Honoured;
/// RST_STREAM frames a minute that a connection may send, and as many that its errors may make Strata send; more close it. -1 is no limit by the minute: what is cancelled before it is looked at may be as many as `http2.max_concurrent_streams_in`.
http2_max_rst_stream_frames_per_minute: int = 200, "proxy.config.http2.max_rst_stream_frames_per_minute", at_least(-1), Reload, Global, Honoured;
/// SETTINGS frames a minute that a connection may send; more close it, -1 is no limit.
http2_max_settings_frames_per_minute: int = 14, "proxy.config.http2.max_settings_frames_per_minute", at_least(-1), Reload, Global, Honoured;
/// Settings a minute that a connection may send; more close it, -1 is no limit.
http2_max_settings_per_minute: int = 14, "proxy.config.http2.max_settings_per_minute", at_least(-1), Reload, Global, Honoured;
/// Bytes that five WINDOW_UPDATE frames in a row add on average; less closes the connection, 0 is no limit.
http2_min_avg_window_update: float = 2560.0, "proxy.config.http2.min_avg_window_update", ratio(0.0, 2_147_483_647.0), Reload, Global, Honoured;
/// Seconds that an HTTP/2 connection may be without a request under way; 0 is no limit.
http2_no_activity_timeout_in: int = 120, "proxy.config.http2.no_activity_timeout_in", SECONDS, Reload, Global, Honoured;
/// HTTP/2 on cleartext connections: 1 for those that begin with its preface (prior knowledge), 0 for none.
http2_prior_knowledge_in: int = 0, "proxy.config.http2.prior_knowledge_in", FLAG, Reload, Global, Honoured;
/// HTTP/2 to origins of http, unasked (prior knowledge): 1 where they are known to speak it, 0 for HTTP/1.
http2_prior_knowledge_out: int = 0, "proxy.config.http2.prior_knowledge_out", FLAG, Reload, Rule, Honoured;
    } };
}
