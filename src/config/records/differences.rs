//! Where a record's default is not that of ATS 9.2, and why.

/// A default that differs.
#[derive(Debug)]
pub(super) struct Difference {
    /// The record.
    pub(super) name: &'static str,
    /// ATS 9.2's default.
    pub(super) ats: &'static str,
    /// Why Strata has another one.
    pub(super) why: &'static str,
}

/// Makes the list of a row a line.
macro_rules! differences {
    ($( $name:literal, $ats:literal, $why:literal; )*) => {
        /// All such records that ATS 9.2 has, sorted by name.
        pub(super) const DIFFERENCES: &[Difference] =
            &[$( Difference { name: $name, ats: $ats, why: $why } ),*];
    };
}

differences! {
    "proxy.config.body_factory.enable_customizations", "1", "the answers' texts are built in";
    "proxy.config.cache.enable_checksum", "0", "what a disk returns is checked always";
    "proxy.config.cache.ram_cache.algorithm", "1", "S3-FIFO keeps scans out of RAM by itself";
    "proxy.config.cache.ram_cache.use_seen_filter", "1", "S3-FIFO admits by itself";
    "proxy.config.hostdb.host_file.path", "NULL", "names that the system knows are known to the proxy";
    "proxy.config.http.allow_multi_range", "0", "RFC 9110 14.2: several ranges are served, a bounded number of them, overlapping ones once";
    "proxy.config.http.cache.heuristic_min_lifetime", "3600", "RFC 9111 4.2.2: without Last-Modified there is nothing to guess from";
    "proxy.config.http.cache.ignore_accept_charset_mismatch", "2", "RFC 9111 4.1: Vary alone says what selects a response";
    "proxy.config.http.cache.ignore_accept_encoding_mismatch", "2", "RFC 9111 4.1: Vary alone says what selects a response";
    "proxy.config.http.cache.ignore_accept_language_mismatch", "2", "RFC 9111 4.1: Vary alone says what selects a response";
    "proxy.config.http.cache.ignore_accept_mismatch", "2", "RFC 9111 4.1: Vary alone says what selects a response";
    "proxy.config.http.cache.max_stale_age", "604800", "a day of stale answers is enough to repair an origin";
    "proxy.config.http.cache.open_write_fail_action", "0", "requests for what is being fetched follow the fetch";
    "proxy.config.http.cache.required_headers", "2", "RFC 9111 3: a heuristic lifetime is a lifetime";
    "proxy.config.http.connect_attempts_rr_retries", "3", "the next address is tried at once";
    "proxy.config.http.insert_client_ip", "1", "a Client-ip that a client sends is not to be believed";
    "proxy.config.http.insert_response_via_str", "0", "RFC 9110 7.6.3: a gateway names itself in what it forwards";
    "proxy.config.http.negative_revalidating_lifetime", "1800", "an origin that answers with errors is stood in for as long as one that is silent; ATS counts from the error, Strata from the expiry";
    "proxy.config.http.proxy_protocol_allowlist", "none", "nobody is believed unless the operator says so; ATS believes everybody";
    "proxy.config.http.response_server_str", "ATS/<version>", "our name, and no version for scanners";
    "proxy.config.http.server_ports", "8080 8080:ipv6", "as ATS 4.2's own file has it; add 8080:ipv6 for IPv6";
    "proxy.config.local_state_dir", "/run/trafficserver", "beside the configuration, without root; the unit sets /var/lib/strata";
    "proxy.config.log.logfile_dir", "/var/log/trafficserver", "with the rest of the state";
    "proxy.config.log.rolling_enabled", "1", "logs are not rolled yet";
    "proxy.config.ssl.CA.cert.path", "/etc/trafficserver", "the directory of the certificates";
    "proxy.config.ssl.client.CA.cert.path", "/etc/trafficserver", "the directory of the configuration";
    "proxy.config.ssl.client.cert.path", "/etc/trafficserver", "the directory of the configuration";
    "proxy.config.ssl.client.private_key.path", "/etc/trafficserver", "the directory of the certificate";
    "proxy.config.ssl.client.verify.server.policy", "PERMISSIVE", "as in ATS 11: an origin that can't prove itself is not asked";
    "proxy.config.ssl.ocsp.response.path", "/etc/trafficserver", "the directory of the certificates";
    "proxy.config.ssl.server.cert.path", "/etc/trafficserver", "the directory of the configuration";
    "proxy.config.ssl.server.cipher_suite", "ECDHE-ECDSA-AES256-GCM-SHA384:…", "what is spoken here of that list is all that is spoken";
    "proxy.config.ssl.server.private_key.path", "/etc/trafficserver", "the directory of the certificates";
    "proxy.config.ssl.servername.filename", "sni.yaml", "TOML like our other new files; ATS's sni.yaml is read where it is alone";
    "proxy.config.stop.shutdown_timeout", "0", "a stop lets transactions end";
}
