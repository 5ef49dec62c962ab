//! Rows from `diags` to `hostdb`: diagnostics, threads, names of hosts.

/// Adds this file's rows to those before and hands all to the next macro.
macro_rules! rows_names {
    ($next:ident $($more:ident)* ; $($before:tt)*) => { $next! { $($more)* ; $($before)*
/// 1 writes debug messages of the tags below.
diags_debug_enabled: int = 0, "proxy.config.diags.debug.enabled", between(0, 3), Reload, Global, Ignored;
/// Regular expression of the tags that are written.
diags_debug_tags: optional = "http|dns", "proxy.config.diags.debug.tags", ANY, Reload, Global, Ignored;
/// Seconds to wait for one answer of a name server.
dns_lookup_timeout: int = 20, "proxy.config.dns.lookup_timeout", between(1, 3600), Reload, Global, Honoured;
/// Questions to name servers that may be open at once.
dns_max_dns_in_flight: int = 2048, "proxy.config.dns.max_dns_in_flight", between(1, 1_000_000), Reload, Global, Ignored;
/// Name servers as `ip[:port]`, separated by blanks, instead of those of resolv.conf.
dns_nameservers: optional = NULL, "proxy.config.dns.nameservers", form(Syntax::NameServers), Reload, Global, Honoured;
/// File that names the name servers; read again at each reload.
dns_resolv_conf: text = "/etc/resolv.conf", "proxy.config.dns.resolv_conf", ANY, Reload, Global, Honoured;
/// Times that a name server which did not answer is asked again.
dns_retries: int = 5, "proxy.config.dns.retries", between(0, 9), Reload, Global, Honoured;
/// 1 asks the name servers in turn.
dns_round_robin_nameservers: int = 1, "proxy.config.dns.round_robin_nameservers", FLAG, Reload, Global, Ignored;
/// 1 chooses the name servers by domain (splitdns.config).
dns_splitdns_enabled: int = 0, "proxy.config.dns.splitDNS.enabled", FLAG, Reload, Global, Ignored;
/// 1 sizes the event threads from the number of cores.
exec_thread_autoconfig: int = 1, "proxy.config.exec_thread.autoconfig", FLAG, Restart, Global, Honoured;
/// Event threads for each core.
exec_thread_autoconfig_scale: float = 1.0, "proxy.config.exec_thread.autoconfig.scale", ratio(0.01, 64.0), Restart, Global, Honoured;
/// Event threads when they are not sized from the cores.
exec_thread_limit: int = 2, "proxy.config.exec_thread.limit", between(1, 4096), Restart, Global, Honoured;
/// URL that clients without a Host field are sent to; NULL answers 400.
header_parse_no_host_url_redirect: optional = NULL, "proxy.config.header.parse.no_host_url_redirect", form(Syntax::Url), Reload, Global, Honoured;
/// File of host names that is asked before the name servers, read again at each reload; NULL asks none.
hostdb_host_file_path: optional = "/etc/hosts", "proxy.config.hostdb.host_file.path", ANY, Reload, Global, Honoured;
/// Seconds until a question for a host's addresses is given up.
hostdb_lookup_timeout: int = 30, "proxy.config.hostdb.lookup_timeout", between(1, 3600), Reload, Global, Honoured;
/// Host names kept; -1 is as many as fit in the bytes below.
hostdb_max_count: int = -1, "proxy.config.hostdb.max_count", at_least(-1), Restart, Global, Ignored;
/// Bytes of the host names kept.
hostdb_max_size: int = 10_485_760, "proxy.config.hostdb.max_size", at_least(0), Restart, Global, Ignored;
/// Seconds for which addresses whose lifetime has ended are still used while they are asked for again.
hostdb_serve_stale_for: int = 0, "proxy.config.hostdb.serve_stale_for", at_least(0), Reload, Global, Ignored;
/// 1 takes the next address of a host at each request.
hostdb_strict_round_robin: int = 0, "proxy.config.hostdb.strict_round_robin", FLAG, Reload, Global, Ignored;
/// Seconds a host's addresses are kept when `ttl_mode` is not 0 (minutes in ATS 4.2).
hostdb_timeout: int = 86_400, "proxy.config.hostdb.timeout", at_least(0), Reload, Global, Honoured;
/// How long addresses are kept: 0 as DNS says, 1 `hostdb.timeout`, 2 the shorter, 3 the longer of both.
hostdb_ttl_mode: int = 0, "proxy.config.hostdb.ttl_mode", between(0, 3), Reload, Global, Honoured;
    } };
}
