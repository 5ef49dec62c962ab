//! Rows from `local_state_dir` to `websocket`: state, logs, sockets, TLS, rules.

/// Adds this file's rows to those before and hands all to the next macro.
macro_rules! rows_service {
    ($next:ident $($more:ident)* ; $($before:tt)*) => { $next! { $($more)* ; $($before)*
/// Directory of the control socket, the durable state and the logs.
local_state_dir: text = "var", "proxy.config.local_state_dir", ANY, Restart, Global, Honoured;
/// 1 deletes rolled files when the quota is reached.
log_auto_delete_rolled_files: int = 1, "proxy.config.log.auto_delete_rolled_files", FLAG, Reload, Global, Ignored;
/// 1 writes common.log.
log_common_log_enabled: int = 0, "proxy.config.log.common_log_enabled", FLAG, Reload, Global, Ignored;
/// 1 reads logs_xml.config.
log_custom_logs_enabled: int = 0, "proxy.config.log.custom_logs_enabled", FLAG, Reload, Global, Ignored;
/// Format of the access log: `squid`, or `strata`, which adds the protocol, what of TLS was agreed on, the hit's tier and the outcome.
log_default_format: text = "strata", "proxy.config.log.default_format", one_of(&["strata", "squid"]), Restart, Global, Honoured;
/// Bytes of a buffer of log lines.
log_log_buffer_size: int = 9216, "proxy.config.log.log_buffer_size", between(1024, 16_777_216), Reload, Global, Ignored;
/// Directory of the logs; NULL is `log` in the local state directory.
log_logfile_dir: optional = NULL, "proxy.config.log.logfile_dir", ANY, Restart, Global, Honoured;
/// What is logged: 0 nothing, 2 or 3 transactions; errors always go to standard error.
log_logging_enabled: int = 3, "proxy.config.log.logging_enabled", between(0, 4), Restart, Global, Honoured;
/// Seconds a log line may wait in its buffer.
log_max_secs_per_buffer: int = 5, "proxy.config.log.max_secs_per_buffer", between(1, 3600), Restart, Global, Honoured;
/// Megabytes that all logs may take.
log_max_space_mb_for_logs: int = 25_000, "proxy.config.log.max_space_mb_for_logs", at_least(0), Reload, Global, Ignored;
/// Megabytes below that quota at which rolled files are deleted.
log_max_space_mb_headroom: int = 1000, "proxy.config.log.max_space_mb_headroom", at_least(0), Reload, Global, Ignored;
/// Rolling of logs: 0 none, 1 by time, 2 by size, 3 by either, 4 at the time if the size is reached.
log_rolling_enabled: int = 0, "proxy.config.log.rolling_enabled", between(0, 4), Reload, Global, Ignored;
/// Seconds between two rollings by time.
log_rolling_interval_sec: int = 86_400, "proxy.config.log.rolling_interval_sec", between(60, 86_400), Reload, Global, Ignored;
/// Hour of the day at which rolling by time begins.
log_rolling_offset_hr: int = 0, "proxy.config.log.rolling_offset_hr", between(0, 23), Reload, Global, Ignored;
/// Megabytes of a log at which it is rolled by size.
log_rolling_size_mb: int = 10, "proxy.config.log.rolling_size_mb", between(1, 1_048_576), Reload, Global, Ignored;
/// One of so many transactions is logged.
log_sampling_frequency: int = 1, "proxy.config.log.sampling_frequency", between(1, 1_000_000), Reload, Global, Ignored;
/// 1 writes squid.blog, ATS 4.2's binary log; Strata's log is text.
log_squid_log_enabled: int = 0, "proxy.config.log.squid_log_enabled", FLAG, Reload, Global, Ignored;
/// Sockets the proxy may hold; it raises its limit of open files to it.
net_connections_throttle: int = 30_000, "proxy.config.net.connections_throttle", between(100, 10_000_000), Restart, Global, Honoured;
/// Seconds after which a connection without any other time limit is closed.
net_default_inactivity_timeout: int = 86_400, "proxy.config.net.default_inactivity_timeout", SECONDS, Reload, Rule, Ignored;
/// Connections that may wait for acceptance; -1 is the system's limit.
net_listen_backlog: int = -1, "proxy.config.net.listen_backlog", between(-1, 2_147_483_647), Restart, Global, Honoured;
/// Client connections at once.
net_max_connections_in: int = 30_000, "proxy.config.net.max_connections_in", between(1, 10_000_000), Restart, Global, Honoured;
/// Options of client sockets, added: 1 no delay, 2 keep-alive probes.
net_sock_option_flag_in: int = 1, "proxy.config.net.sock_option_flag_in", between(0, 511), Reload, Global, Honoured;
/// File for the program's own messages; Strata writes them to standard error.
output_logfile: text = "traffic.out", "proxy.config.output.logfile", ANY, Restart, Global, Ignored;
/// 1 applies the rules to requests that name only a path (reverse proxy).
reverse_proxy_enabled: int = 1, "proxy.config.reverse_proxy.enabled", FLAG, Reload, Global, Honoured;
/// File of the authorities whose certificates clients prove themselves by (`client.certification_level`).
ssl_ca_cert_filename: optional = NULL, "proxy.config.ssl.CA.cert.filename", ANY, Restart, Global, Honoured;
/// Directory of that file and of the files of `ssl_ca_name`; NULL is that of the certificates.
ssl_ca_cert_path: optional = NULL, "proxy.config.ssl.CA.cert.path", ANY, Restart, Global, Honoured;
/// 1 speaks TLS 1.2 with clients.
ssl_tlsv1_2: int = 1, "proxy.config.ssl.TLSv1_2", FLAG, Restart, Global, Honoured;
/// 1 speaks TLS 1.3 with clients.
ssl_tlsv1_3: int = 1, "proxy.config.ssl.TLSv1_3", FLAG, Restart, Global, Honoured;
/// File of the authorities that origins may prove themselves by; NULL is those that the system trusts.
ssl_client_ca_cert_filename: optional = NULL, "proxy.config.ssl.client.CA.cert.filename", ANY, Reload, Rule, Honoured;
/// Directory of that file; NULL is that of records.config.
ssl_client_ca_cert_path: optional = NULL, "proxy.config.ssl.client.CA.cert.path", ANY, Reload, Global, Honoured;
/// Protocols that origins of https are offered, the one liked most first; NULL is HTTP/1.1 alone.
ssl_client_alpn_protocols: optional = NULL, "proxy.config.ssl.client.alpn_protocols", one_of(&["http/1.1", "h2,http/1.1", "http/1.1,h2", "h2"]), Reload, Rule, Honoured;
/// File of the certificate that origins are shown who ask for one; NULL shows none.
ssl_client_cert_filename: optional = NULL, "proxy.config.ssl.client.cert.filename", ANY, Reload, Rule, Honoured;
/// Directory of that file; NULL is that of records.config.
ssl_client_cert_path: optional = NULL, "proxy.config.ssl.client.cert.path", ANY, Reload, Global, Honoured;
/// Certificates of clients: 0 are not asked for, 1 may be shown, 2 must be.
ssl_client_certification_level: int = 0, "proxy.config.ssl.client.certification_level", between(0, 2), Restart, Global, Honoured;
/// File of its key; NULL is the certificate's own file.
ssl_client_private_key_filename: optional = NULL, "proxy.config.ssl.client.private_key.filename", ANY, Reload, Rule, Honoured;
/// Directory of that file; NULL is that of the certificate.
ssl_client_private_key_path: optional = NULL, "proxy.config.ssl.client.private_key.path", ANY, Reload, Global, Honoured;
/// Certificates of origins: DISABLED does not check, PERMISSIVE warns, ENFORCED refuses.
ssl_client_verify_server_policy: text = "ENFORCED", "proxy.config.ssl.client.verify.server.policy", one_of(&["DISABLED", "PERMISSIVE", "ENFORCED"]), Reload, Rule, Honoured;
/// Seconds for the handshake with a client; 0 is no limit.
ssl_handshake_timeout_in: int = 30, "proxy.config.ssl.handshake_timeout_in", between(0, 65_535), Restart, Global, Honoured;
/// Directory of the files of `ssl_ocsp_name`; NULL is that of the certificates.
ssl_ocsp_response_path: optional = NULL, "proxy.config.ssl.ocsp.response.path", ANY, Restart, Global, Honoured;
/// Ciphers of TLS 1.3 spoken with clients, by OpenSSL's names, best first, with colons between them; others are left out with a warning.
ssl_server_tlsv1_3_cipher_suites: text = "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256", "proxy.config.ssl.server.TLSv1_3.cipher_suites", ANY, Restart, Global, Honoured;
/// Directory of the server's certificates; NULL is that of records.config.
ssl_server_cert_path: optional = NULL, "proxy.config.ssl.server.cert.path", ANY, Restart, Global, Honoured;
/// The same of TLS 1.2; `!NAME` takes one away, `ALL` is all that are spoken here.
ssl_server_cipher_suite: text = "ALL", "proxy.config.ssl.server.cipher_suite", ANY, Restart, Global, Honoured;
/// Who chooses of the ciphers that both sides speak: 0 the client, 1 the order of the records.
ssl_server_honor_cipher_order: int = 1, "proxy.config.ssl.server.honor_cipher_order", FLAG, Restart, Global, Honoured;
/// 1 refuses a start for which a certificate can't be loaded; 0 starts without it.
ssl_server_multicert_exit_on_load_fail: int = 1, "proxy.config.ssl.server.multicert.exit_on_load_fail", FLAG, Restart, Global, Honoured;
/// File of the server's certificates.
ssl_server_multicert_filename: text = "ssl_multicert.config", "proxy.config.ssl.server.multicert.filename", ANY, Reload, Global, Honoured;
/// Directory of the certificates' keys; NULL is that of the certificates.
ssl_server_private_key_path: optional = NULL, "proxy.config.ssl.server.private_key.path", ANY, Restart, Global, Honoured;
/// 1 gives clients tickets to resume their TLS sessions with.
ssl_server_session_ticket_enable: int = 1, "proxy.config.ssl.server.session_ticket.enable", FLAG, Restart, Global, Honoured;
/// Tickets that a client is given at a handshake of TLS 1.3; 0 is none in any version.
ssl_server_session_ticket_number: int = 2, "proxy.config.ssl.server.session_ticket.number", between(0, 16), Restart, Global, Honoured;
/// Highest version of TLS spoken with clients: 2 is 1.2, 3 is 1.3, -1 leaves it to `ssl.TLSv1_2` and `ssl.TLSv1_3`.
ssl_server_version_max: int = -1, "proxy.config.ssl.server.version.max", between(-1, 3), Restart, Global, Honoured;
/// Lowest version, in the same numbers.
ssl_server_version_min: int = -1, "proxy.config.ssl.server.version.min", between(-1, 3), Restart, Global, Honoured;
/// File of what holds for clients that ask for a name: TOML, or YAML if it ends in `.yaml`; without a record, sni.yaml is read where there is no sni.toml.
ssl_servername_filename: text = "sni.toml", "proxy.config.ssl.servername.filename", ANY, Reload, Global, Honoured;
/// TLS sessions: 0 not kept, 1 by the library, 2 by the proxy.
ssl_session_cache: int = 2, "proxy.config.ssl.session_cache", between(0, 2), Restart, Global, Ignored;
/// Seconds that transactions may go on after the order to stop.
stop_shutdown_timeout: int = 10, "proxy.config.stop.shutdown_timeout", SECONDS, Reload, Global, Honoured;
/// Seconds after which a read or write of a span that is not answered is an I/O error; 0 is for ever.
strata_cache_io_timeout: int = 30, "proxy.config.strata.cache.io_timeout", between(0, 3600), Reload, Global, Honoured;
/// Milliseconds that a request waits for the page of the directory that a start has not read yet before it goes to the origin; 0 never waits.
strata_cache_load_wait: int = 1000, "proxy.config.strata.cache.load_wait", between(0, 60_000), Reload, Global, Honoured;
/// Fragments and directory pages with a wrong checksum at which a span goes offline.
strata_cache_max_checksum_errors: int = 100, "proxy.config.strata.cache.max_checksum_errors", between(1, 1_000_000), Reload, Global, Honoured;
/// Reads of a span that one event thread has under way at a time, by io_uring.
strata_disk_read_depth: int = 64, "proxy.config.strata.disk.read_depth", between(1, 1024), Restart, Global, Honoured;
/// Reads of a span that may wait beside them, or for a thread of the pool; beyond, a read is a miss.
strata_disk_read_queue: int = 1024, "proxy.config.strata.disk.read_queue", between(0, 1_000_000), Restart, Global, Honoured;
/// Seconds between two saves of the names of what is hottest in the RAM cache; it is saved at a stop too; 0 never saves.
strata_ram_cache_save_interval: int = 300, "proxy.config.strata.ram_cache.save_interval", between(0, 86_400), Reload, Global, Honoured;
/// Bytes a second that a start reads ahead of what was hottest in the RAM cache; 0 reads nothing ahead.
strata_ram_cache_warm_rate: int = 33_554_432, "proxy.config.strata.ram_cache.warm_rate", at_least(0), Reload, Global, Honoured;
/// A host's regular expression: `anchored` must match the whole host, `search` any part of it, as in ATS.
strata_remap_host_regex: text = "anchored", "proxy.config.strata.remap.host_regex", one_of(&["anchored", "search"]), Reload, Global, Honoured;
/// A rule's path: `segment` ends at a `/`, `byte` matches any longer path, as in ATS.
strata_remap_path_prefix: text = "segment", "proxy.config.strata.remap.path_prefix", one_of(&["segment", "byte"]), Reload, Global, Honoured;
/// Seconds between two looks at the certificates' files, to serve those that have changed; 0 never looks, a reload always does.
strata_ssl_certificate_check_interval: int = 10, "proxy.config.strata.ssl.certificate_check_interval", between(0, 86_400), Reload, Global, Honoured;
/// Bytes that a fast span can take in its life (TBW), to project the days left; 0 is not known.
strata_tier_fast_endurance: int = 0, "proxy.config.strata.tier.fast.endurance", at_least(0), Reload, Global, Honoured;
/// Bytes that may be written to each fast span a day; copies beyond it are left out. 0 is no limit.
strata_tier_fast_write_budget: int = 0, "proxy.config.strata.tier.fast.write_budget", at_least(0), Reload, Global, Honoured;
/// Bytes of the write budget that may be written at once; 0 is an hour's share.
strata_tier_fast_write_burst: int = 0, "proxy.config.strata.tier.fast.write_burst", at_least(0), Reload, Global, Honoured;
/// The tier that stores go to when there are both; `fast` only while its write budget lasts.
strata_tier_fills: text = "capacity", "proxy.config.strata.tier.fills", one_of(&["capacity", "fast"]), Reload, Global, Honoured;
/// Threads for tasks that block.
task_threads: int = 2, "proxy.config.task_threads", between(1, 4096), Restart, Global, Ignored;
/// Filters of a rule: 0 in ATS 9's way, 1 in ATS 10's.
url_remap_acl_behavior_policy: int = 0, "proxy.config.url_remap.acl_behavior_policy", FLAG, Reload, Global, Ignored;
/// File of the rules; another one is read at the next reload.
url_remap_filename: text = "remap.config", "proxy.config.url_remap.filename", ANY, Reload, Global, Honoured;
/// Rules below which a file of rules counts as faulty.
url_remap_min_rules_required: int = 0, "proxy.config.url_remap.min_rules_required", at_least(0), Reload, Global, Ignored;
/// 1 sends the client's Host to the origin, and keys the cache by it.
url_remap_pristine_host_hdr: int = 0, "proxy.config.url_remap.pristine_host_hdr", FLAG, Reload, Rule, Honoured;
/// 1 refuses what no rule matches; 0 makes it a forward proxy for `http.forward_allow`.
url_remap_remap_required: int = 1, "proxy.config.url_remap.remap_required", FLAG, Reload, Global, Honoured;
/// Seconds that a connection switched by Upgrade may last; 0 is no limit.
websocket_active_timeout: int = 3600, "proxy.config.websocket.active_timeout", SECONDS, Reload, Rule, Honoured;
/// Seconds for which nothing may move on it, either way; 0 is no limit.
websocket_no_activity_timeout: int = 600, "proxy.config.websocket.no_activity_timeout", SECONDS, Reload, Rule, Honoured;
    } };
}
