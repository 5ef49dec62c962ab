//! Rows from `http.chunking_enabled` to the end of `http`: connections, origins, forwarding.

/// Adds this file's rows to those before and hands all to the next macro.
macro_rules! rows_http {
    ($next:ident $($more:ident)* ; $($before:tt)*) => { $next! { $($more)* ; $($before)*
/// Chunked responses to HTTP/1.1 clients: 0 never, 1 always, 2 if the origin speaks 1.1, 3 as 2 and the client is 1.1.
http_chunking_enabled: int = 1, "proxy.config.http.chunking_enabled", between(0, 3), Reload, Rule, Ignored;
/// Further attempts to connect to an origin.
http_connect_attempts_max_retries: int = 3, "proxy.config.http.connect_attempts_max_retries", between(0, 254), Reload, Rule, Honoured;
/// Further attempts to connect to an origin of which all addresses count as down.
http_connect_attempts_max_retries_down_server: int = 1, "proxy.config.http.connect_attempts_max_retries_down_server", between(0, 254), Reload, Rule, Honoured;
/// Failures in a row at an address before the next one is tried; each is tried once.
http_connect_attempts_rr_retries: int = 1, "proxy.config.http.connect_attempts_rr_retries", between(0, 254), Reload, Rule, Honoured;
/// Seconds for a connection to an origin.
http_connect_attempts_timeout: int = 30, "proxy.config.http.connect_attempts_timeout", between(1, 86_400), Reload, Rule, Honoured;
/// Ports that CONNECT may reach: numbers and ranges, or `*`.
http_connect_ports: text = "443", "proxy.config.http.connect_ports", ANY, Reload, Global, Honoured;
/// Seconds an address counts as down that could not be connected to, or until it answers: it is tried behind the others. Each event thread finds out for itself. 0 is never.
http_down_server_cache_time: int = 60, "proxy.config.http.down_server.cache_time", SECONDS, Reload, Rule, Honoured;
/// Networks whose clients may choose the origin (forward proxy), separated by blanks.
http_forward_allow: text = "127.0.0.0/8 ::1", "proxy.config.http.forward_allow", form(Syntax::Networks), Reload, Global, Honoured;
/// A request over TLS for a host that its connection's handshake does not meet the sni.toml of: 0 is served, 1 with a warning, 2 is answered 421.
http_host_sni_policy: int = 2, "proxy.config.http.host_sni_policy", between(0, 2), Reload, Global, Honoured;
/// 1 adds Age to responses from the cache.
http_insert_age_in_response: int = 1, "proxy.config.http.insert_age_in_response", FLAG, Reload, Rule, Honoured;
/// Client-ip to the origin: 0 none, 1 if the request has none, 2 always the client's address.
http_insert_client_ip: int = 2, "proxy.config.http.insert_client_ip", between(0, 2), Reload, Rule, Honoured;
/// Parts of the element that is added to Forwarded (RFC 7239), separated by `|`: `for`, `by=unknown`, `by=servername`, `by=uuid`, `by=ip`, `proto`, `host`, `connection=compact`, `connection=std`, `connection=full`; or `none`. Of several `by` or `connection` the last counts.
http_insert_forwarded: text = "none", "proxy.config.http.insert_forwarded", form(Syntax::Forwarded), Reload, Rule, Honoured;
/// Via to the origin: 0 none, 1 our name, 2 the codes of the cache too, 3 all codes (traffic_via reads them), 4 the client's protocols too.
http_insert_request_via_str: int = 1, "proxy.config.http.insert_request_via_str", between(0, 4), Reload, Rule, Honoured;
/// Via to the client: 0 none, 1 our name, 2 the codes of the cache too, 3 all codes (traffic_via reads them), 4 the client's protocols too.
http_insert_response_via_str: int = 1, "proxy.config.http.insert_response_via_str", between(0, 4), Reload, Rule, Honoured;
/// 1 adds the client's address to X-Forwarded-For.
http_insert_squid_x_forwarded_for: int = 1, "proxy.config.http.insert_squid_x_forwarded_for", FLAG, Reload, Rule, Honoured;
/// 1 keeps client connections open.
http_keep_alive_enabled_in: int = 1, "proxy.config.http.keep_alive_enabled_in", FLAG, Reload, Early, Honoured;
/// 1 keeps origin connections open.
http_keep_alive_enabled_out: int = 1, "proxy.config.http.keep_alive_enabled_out", FLAG, Reload, Rule, Honoured;
/// Seconds a client connection may be idle between requests; 0 is no limit.
http_keep_alive_no_activity_timeout_in: int = 120, "proxy.config.http.keep_alive_no_activity_timeout_in", SECONDS, Reload, Early, Honoured;
/// Seconds an origin connection may be idle in the pool; 0 is no limit.
http_keep_alive_no_activity_timeout_out: int = 120, "proxy.config.http.keep_alive_no_activity_timeout_out", SECONDS, Reload, Rule, Honoured;
/// 1 sends requests with a body over pooled connections too.
http_keep_alive_post_out: int = 1, "proxy.config.http.keep_alive_post_out", FLAG, Reload, Rule, Honoured;
/// Own Via entries a request may carry before it counts as a loop.
http_max_proxy_cycles: int = 0, "proxy.config.http.max_proxy_cycles", between(0, 1000), Reload, Early, Honoured;
/// 1 stores the statuses of `negative_caching_list` without an explicit lifetime.
http_negative_caching_enabled: int = 0, "proxy.config.http.negative_caching_enabled", FLAG, Reload, Rule, Honoured;
/// Seconds such a response is fresh.
http_negative_caching_lifetime: int = 1800, "proxy.config.http.negative_caching_lifetime", at_least(0), Reload, Rule, Honoured;
/// Statuses of negative caching, separated by blanks; `404=60` gives one seconds of its own.
http_negative_caching_list: text = "204 305 403 404 414 500 501 502 503 504", "proxy.config.http.negative_caching_list", form(Syntax::StatusTable), Reload, Rule, Honoured;
/// 1 serves a stale response when the origin fails.
http_negative_revalidating_enabled: int = 1, "proxy.config.http.negative_revalidating_enabled", FLAG, Reload, Rule, Honoured;
/// Seconds after its expiry up to which it is served in place of a status of `negative_revalidating_list`; `http.cache.max_stale_age` bounds it too.
http_negative_revalidating_lifetime: int = 86_400, "proxy.config.http.negative_revalidating_lifetime", at_least(0), Reload, Rule, Honoured;
/// Statuses that count as a failure of the origin, separated by blanks.
http_negative_revalidating_list: text = "500 502 503 504", "proxy.config.http.negative_revalidating_list", form(Syntax::Statuses), Reload, Rule, Honoured;
/// Accept-Encoding as sent and keyed: 0 as it came, 1 gzip or nothing, 2 br, else gzip, else nothing, 3 as 2 but both where both are taken, 4 zstd, else as 2, 5 all that are taken of zstd, br and gzip.
http_normalize_ae: int = 1, "proxy.config.http.normalize_ae", between(0, 5), Reload, Rule, Honoured;
/// Redirects of an origin that the proxy follows itself.
http_number_of_redirections: int = 0, "proxy.config.http.number_of_redirections", between(0, 100), Reload, Rule, Ignored;
/// 1 uses the parents of parent.config.
http_parent_proxy_routing_enable: int = 0, "proxy.config.http.parent_proxy_routing_enable", FLAG, Reload, Global, Ignored;
/// What is counted by the two records below: ip, port, host, both or none.
http_per_server_connection_match: text = "both", "proxy.config.http.per_server.connection.match", one_of(&["ip", "port", "host", "both", "none"]), Reload, Rule, Ignored;
/// Connections to one origin at once; 0 is no limit.
http_per_server_connection_max: int = 0, "proxy.config.http.per_server.connection.max", between(0, 1_000_000), Reload, Rule, Honoured;
/// Idle connections kept to one origin.
http_per_server_connection_min: int = 0, "proxy.config.http.per_server.connection.min", between(0, 1_000_000), Reload, Rule, Ignored;
/// Seconds for a connection to an origin and its first byte at a request with a body.
http_post_connect_attempts_timeout: int = 1800, "proxy.config.http.post_connect_attempts_timeout", SECONDS, Reload, Rule, Ignored;
/// Networks whose introductions by the PROXY protocol are believed at `pp` ports, separated by blanks; others are not served there. NULL is nobody.
http_proxy_protocol_allowlist: optional = NULL, "proxy.config.http.proxy_protocol_allowlist", form(Syntax::Networks), Reload, Global, Honoured;
/// Connections to origins begin with who the client is, by the PROXY protocol of version 1 or 2, and serve one request each; -1 they do not. 0, the version that the client came by, is not honoured.
http_proxy_protocol_out: int = -1, "proxy.config.http.proxy_protocol_out", between(-1, 2), Reload, Rule, Honoured;
/// 1 lets PUSH store the response that is its body (ip_allow must let it too).
http_push_method_enabled: int = 0, "proxy.config.http.push_method_enabled", FLAG, Reload, Global, Honoured;
/// 1 logs and counts RAM hits apart; in Strata it is always so.
http_record_tcp_mem_hit: int = 1, "proxy.config.http.record_tcp_mem_hit", FLAG, Reload, Global, Ignored;
/// Bytes of a request's head above which it is refused; so is one of more than 1000 fields.
http_request_header_max_size: int = 131_072, "proxy.config.http.request_header_max_size", between(1024, 16_777_216), Reload, Early, Honoured;
/// Bytes of a response's head above which it is refused; so is one of more than 2048 fields.
http_response_header_max_size: int = 131_072, "proxy.config.http.response_header_max_size", between(1024, 16_777_216), Reload, Rule, Honoured;
/// Server in responses: 0 the origin's, 1 ours always, 2 ours if the origin sent none.
http_response_server_enabled: int = 1, "proxy.config.http.response_server_enabled", between(0, 2), Reload, Rule, Honoured;
/// Our value of Server.
http_response_server_str: text = "Strata", "proxy.config.http.response_server_str", ANY, Reload, Rule, Honoured;
/// HTTP/1.1 to origins: 0 never, 1 always, 2 if known to speak it, 3 if the client does.
http_send_http11_requests: int = 1, "proxy.config.http.send_http11_requests", between(0, 3), Reload, Rule, Ignored;
/// Connections to all origins at once; 0 is no limit.
http_server_max_connections: int = 0, "proxy.config.http.server_max_connections", between(0, 1_000_000), Reload, Global, Honoured;
/// Ports to listen on; 0 lets the system choose one.
http_server_ports: text = "8080", "proxy.config.http.server_ports", ANY, Restart, Global, Honoured;
/// What must agree for a pooled origin connection to be used again: a list of none, ip, host, both, hostonly, sni, cert.
http_server_session_sharing_match: text = "both", "proxy.config.http.server_session_sharing.match", ANY, Reload, Rule, Ignored;
/// Whose origin connections are shared: global, thread, hybrid or global_locked; in Strata a thread's.
http_server_session_sharing_pool: text = "thread", "proxy.config.http.server_session_sharing.pool", one_of(&["global", "thread", "hybrid", "global_locked"]), Restart, Global, Ignored;
/// Milliseconds from which a transaction's milestones are logged; 0 is never.
http_slow_log_threshold: int = 0, "proxy.config.http.slow.log.threshold", at_least(0), Reload, Global, Ignored;
/// Bytes a request target may hold: 0 any, 1 by RFC 3986, 2 printable ones.
http_strict_uri_parsing: int = 2, "proxy.config.http.strict_uri_parsing", between(0, 2), Reload, Global, Ignored;
/// Seconds a transaction may take at its client; 0 is no limit.
http_transaction_active_timeout_in: int = 900, "proxy.config.http.transaction_active_timeout_in", SECONDS, Reload, Rule, Honoured;
/// Seconds a transaction may take at its origin; 0 is no limit.
http_transaction_active_timeout_out: int = 0, "proxy.config.http.transaction_active_timeout_out", SECONDS, Reload, Rule, Honoured;
/// Seconds a client may stay silent within a transaction; 0 is no limit.
http_transaction_no_activity_timeout_in: int = 30, "proxy.config.http.transaction_no_activity_timeout_in", SECONDS, Reload, Early, Honoured;
/// Seconds an origin may stay silent within a transaction; 0 is no limit.
http_transaction_no_activity_timeout_out: int = 30, "proxy.config.http.transaction_no_activity_timeout_out", SECONDS, Reload, Rule, Honoured;
/// Protocols that a client's Upgrade may switch to if the origin's 101 agrees, by name; none for no protocol.
http_upgrade_protocols: text = "websocket", "proxy.config.http.upgrade_protocols", ANY, Reload, Global, Honoured;
/// Start: 0 accepts at once, 1 once the cache is ready, 2 fails if no span is usable, 3 fails unless all are.
http_wait_for_cache: int = 0, "proxy.config.http.wait_for_cache", between(0, 3), Restart, Global, Honoured;
    } };
}
