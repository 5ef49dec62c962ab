//! Names to addresses: literals, the hosts file, DNS by hickory with its TTLs.

use crate::config::records::Records;
use crate::metrics::{Cells, Metric};
use crate::proxy::settings::seconds;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::parse_resolv_conf;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Names that one thread's answer cache holds.
const CACHED_NAMES: u64 = 4096;

/// How long an address may be kept (`proxy.config.hostdb.ttl_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TtlMode {
    /// 0: as long as DNS says.
    #[default]
    Dns,
    /// 1: `hostdb.timeout`, whatever DNS says.
    Fixed,
    /// 2: the shorter of both.
    Shorter,
    /// 3: the longer of both.
    Longer,
}

/// The records of HostDB and DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverOptions {
    /// A hosts file that comes before DNS (`hostdb.host_file.path`).
    pub hosts_file: Option<PathBuf>,
    /// Where the name servers stand (`dns.resolv_conf`).
    pub resolv_conf: PathBuf,
    /// Name servers that override the file (`dns.nameservers`).
    pub nameservers: Vec<SocketAddr>,
    /// Times that a name server which did not answer is asked again
    /// (`dns.retries`).
    pub retries: usize,
    /// Wait for one answer (`dns.lookup_timeout`).
    pub timeout: Duration,
    /// Wait for an address over all tries (`hostdb.lookup_timeout`).
    pub total: Duration,
    /// Which lifetime an address has.
    pub ttl_mode: TtlMode,
    /// The lifetime of `ttl_mode` (`hostdb.timeout`).
    pub ttl: Duration,
}

impl Default for ResolverOptions {
    fn default() -> Self {
        Self::from_records(&Records::default())
    }
}

impl ResolverOptions {
    /// The options that `records` say.
    #[must_use]
    pub fn from_records(records: &Records) -> Self {
        let hosts_file = records.hostdb_host_file_path.as_deref();
        let servers = records.dns_nameservers.as_deref().unwrap_or("");
        let words = servers.split([' ', '\t', ',', ';']);
        Self {
            hosts_file: hosts_file.map(PathBuf::from),
            resolv_conf: PathBuf::from(&*records.dns_resolv_conf),
            nameservers: words.filter_map(nameserver).collect(),
            retries: usize::try_from(records.dns_retries).unwrap_or(0),
            timeout: seconds(records.dns_lookup_timeout),
            total: seconds(records.hostdb_lookup_timeout),
            ttl_mode: ttl_mode(records.hostdb_ttl_mode),
            ttl: seconds(records.hostdb_timeout),
        }
    }
}

/// What names are resolved by: the options, and what the files hold that they
/// name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSources {
    options: ResolverOptions,
    hosts: HashMap<String, Vec<IpAddr>>,
    resolv_conf: Result<Vec<u8>, String>,
}

impl NameSources {
    /// Reads the hosts file and the name servers'. What can't be read is left
    /// out, and names that need it fail by name later. Not for a thread that
    /// serves.
    #[must_use]
    pub fn read(options: ResolverOptions) -> Self {
        let hosts = options.hosts_file.as_deref().map(read_hosts);
        let resolv_conf = if options.nameservers.is_empty() {
            let path = &options.resolv_conf;
            std::fs::read(path).map_err(|error| named(path, &error))
        } else {
            Ok(Vec::new())
        };
        Self {
            options,
            hosts: hosts.unwrap_or_default(),
            resolv_conf,
        }
    }
}

/// `ip`, `ip:port` or `[ip]:port`; 53 without a port.
fn nameserver(word: &str) -> Option<SocketAddr> {
    let bare = || Some(SocketAddr::new(literal(word)?, 53));
    word.parse().ok().or_else(bare)
}

const fn ttl_mode(value: i64) -> TtlMode {
    match value {
        1 => TtlMode::Fixed,
        2 => TtlMode::Shorter,
        3 => TtlMode::Longer,
        _ => TtlMode::Dns,
    }
}

/// Why a name has no address.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The name servers can't be learnt, so only literals and the hosts file
    /// resolve.
    #[error("no name servers: {0}")]
    Unconfigured(String),
    /// DNS said no, or nothing.
    #[error("{name}: {reason}")]
    Failed {
        /// The name asked for.
        name: String,
        /// What DNS said.
        reason: String,
    },
}

/// One thread's resolver.
pub struct Resolver {
    sources: Arc<NameSources>,
    dns: Result<TokioResolver, String>,
    cells: Arc<Cells>,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver")
            .field("hosts", &self.sources.hosts.len())
            .finish_non_exhaustive()
    }
}

impl Resolver {
    /// A resolver that has asked nothing yet.
    #[must_use]
    pub fn new(sources: Arc<NameSources>, cells: Arc<Cells>) -> Self {
        Self {
            dns: dns_client(&sources),
            sources,
            cells,
        }
    }

    /// What it resolves by.
    pub(super) const fn sources(&self) -> &Arc<NameSources> {
        &self.sources
    }

    /// The same for other sources; what DNS said before is forgotten.
    pub(super) fn by(&self, sources: Arc<NameSources>) -> Self {
        Self::new(sources, Arc::clone(&self.cells))
    }

    /// The addresses of `host` (a name, or an address in URL form), at least
    /// one.
    ///
    /// # Errors
    /// [`ResolveError`] when there is none.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ResolveError> {
        self.cells.add(Metric::HostdbLookups, 1);
        if let Some(known) = self.known(host) {
            self.cells.add(Metric::HostdbHits, 1);
            return Ok(known);
        }
        self.cells.add(Metric::DnsTotalLookups, 1);
        let answer = self.ask(host).await;
        self.cells.add(counter(&answer), 1);
        answer
    }

    /// What needs no DNS.
    fn known(&self, host: &str) -> Option<Vec<IpAddr>> {
        literal(host)
            .map(|ip| vec![ip])
            .or_else(|| self.sources.hosts.get(&host.to_ascii_lowercase()).cloned())
            .or_else(|| is_localhost(host).then(|| vec![IpAddr::from([127, 0, 0, 1])]))
    }

    async fn ask(&self, host: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let dns = self.dns.as_ref();
        let dns = dns.map_err(|why| ResolveError::Unconfigured(why.clone()))?;
        let total = self.sources.options.total;
        let failed = |reason: String| ResolveError::Failed {
            name: host.to_owned(),
            reason,
        };
        let answer = tokio::time::timeout(total, dns.lookup_ip(absolute(host))).await;
        let answer = answer.map_err(|_| failed(format!("no answer for {total:?}")))?;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let addresses: Vec<IpAddr> = answer.iter().collect();
        if addresses.is_empty() {
            return Err(failed("no address".to_owned()));
        }
        Ok(addresses)
    }
}

const fn counter(answer: &Result<Vec<IpAddr>, ResolveError>) -> Metric {
    match answer {
        Ok(_) => Metric::DnsLookupSuccesses,
        Err(_) => Metric::DnsLookupFailures,
    }
}

/// An address as URLs have it: IPv6 in brackets.
fn literal(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|s| s.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

/// RFC 6761 6.3: `localhost` never goes to DNS.
fn is_localhost(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// A name with a dot is whole: no search domain is tried behind it.
fn absolute(host: &str) -> String {
    let whole = host.contains('.') && !host.ends_with('.');
    format!("{host}{}", if whole { "." } else { "" })
}

/// Reads `address name name…` lines; a file that isn't there has none.
fn read_hosts(path: &Path) -> HashMap<String, Vec<IpAddr>> {
    let text = std::fs::read(path).unwrap_or_else(|error| {
        tracing::warn!("{}: {error}; no names from it", path.display());
        Vec::new()
    });
    parse_hosts(&String::from_utf8_lossy(&text))
}

fn parse_hosts(text: &str) -> HashMap<String, Vec<IpAddr>> {
    let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or("").split_whitespace();
        let Some(ip) = words.next().and_then(|word| word.parse().ok()) else {
            continue;
        };
        for name in words {
            hosts.entry(name.to_ascii_lowercase()).or_default().push(ip);
        }
    }
    hosts
}

fn dns_client(sources: &NameSources) -> Result<TokioResolver, String> {
    let (config, opts) = name_servers(sources)?;
    let provider = TokioRuntimeProvider::default();
    TokioResolver::builder_with_config(config, provider)
        .with_options(tuned(opts, &sources.options))
        .build()
        .map_err(|error| error.to_string())
}

fn name_servers(sources: &NameSources) -> Result<(ResolverConfig, ResolverOpts), String> {
    let options = &sources.options;
    if !options.nameservers.is_empty() {
        let servers = options.nameservers.iter().map(|at| name_server(*at));
        let config = ResolverConfig::from_name_servers(servers.collect());
        return Ok((config, ResolverOpts::default()));
    }
    let text = sources.resolv_conf.as_ref().map_err(String::clone)?;
    parse_resolv_conf(text).map_err(|error| named(&options.resolv_conf, &error))
}

fn named(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn name_server(at: SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
    let at_port = connections.map(|mut connection| {
        connection.port = at.port();
        connection
    });
    NameServerConfig::new(at.ip(), true, at_port.into())
}

fn tuned(mut opts: ResolverOpts, options: &ResolverOptions) -> ResolverOpts {
    // What it calls attempts are those after the first.
    opts.attempts = options.retries;
    opts.timeout = options.timeout;
    opts.cache_size = CACHED_NAMES;
    opts.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    opts.use_hosts_file = ResolveHosts::Never;
    let ttl = Some(options.ttl);
    match options.ttl_mode {
        TtlMode::Dns => {}
        TtlMode::Fixed => (opts.positive_min_ttl, opts.positive_max_ttl) = (ttl, ttl),
        TtlMode::Shorter => opts.positive_max_ttl = ttl,
        TtlMode::Longer => opts.positive_min_ttl = ttl,
    }
    opts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Registry;
    use std::io::Write;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::net::UdpSocket;

    fn sources(hosts: Option<PathBuf>) -> Arc<NameSources> {
        Arc::new(NameSources::read(ResolverOptions {
            hosts_file: hosts,
            resolv_conf: "/nonexistent/resolv.conf".into(),
            ..ResolverOptions::default()
        }))
    }

    #[tokio::test]
    async fn literals_need_no_name_server() {
        let registry = Registry::new();
        let resolver = Resolver::new(sources(None), registry.cells());
        let v4 = resolver.addresses("192.0.2.7").await.unwrap();
        assert_eq!(v4, [IpAddr::from([192, 0, 2, 7])]);
        let v6 = resolver.addresses("[2001:db8::1]").await.unwrap();
        assert_eq!(v6, ["2001:db8::1".parse::<IpAddr>().unwrap()]);
        assert_eq!(registry.get(Metric::HostdbHits), 2);
    }

    #[tokio::test]
    async fn the_hosts_file_comes_first_in_any_case() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"# names\n192.0.2.1 a.test A2.test # x\r\n192.0.2.2 a.test\n")
            .unwrap();
        let sources = sources(Some(file.path().to_owned()));
        let resolver = Resolver::new(sources, Registry::new().cells());
        let found = resolver.addresses("A.TEST").await.unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(resolver.addresses("a2.test").await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_name_without_name_servers_fails_by_reason() {
        let registry = Registry::new();
        let resolver = Resolver::new(sources(None), registry.cells());
        let error = resolver.addresses("a.example").await.unwrap_err();
        assert!(error.to_string().contains("/nonexistent/resolv.conf"));
        assert_eq!(registry.get(Metric::DnsLookupFailures), 1);
    }

    #[test]
    fn name_servers_have_a_port_or_53() {
        for (word, at) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("192.0.2.1:54", "192.0.2.1:54"),
            ("[2001:db8::1]:54", "[2001:db8::1]:54"),
            ("2001:db8::1", "[2001:db8::1]:53"),
        ] {
            assert_eq!(nameserver(word), Some(at.parse().unwrap()), "{word}");
        }
        assert_eq!(nameserver("x"), None);
    }

    #[tokio::test]
    async fn localhost_never_goes_to_dns() {
        let resolver = Resolver::new(sources(None), Registry::new().cells());
        let found = resolver.addresses("x.localhost").await.unwrap();
        assert!(found[0].is_loopback());
    }
    /// A name server that gives 192.0.2.1 for this many seconds, or with
    /// `None` says nothing. Its address, and how often it was asked for A.
    async fn server(ttl: Option<u32>) -> (SocketAddr, Arc<AtomicUsize>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = socket.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query).await {
                let is_a = question(&query[..length]).ends_with(&[0, 1, 0, 1]);
                count.fetch_add(usize::from(is_a), Ordering::SeqCst);
                if let Some(ttl) = ttl {
                    let answer = answer(&query[..length], is_a.then_some(ttl));
                    socket.send_to(&answer, from).await.unwrap();
                }
            }
        });
        (at, asked)
    }

    /// The one question of a query (RFC 1035 4.1.2).
    fn question(query: &[u8]) -> &[u8] {
        let name = query[12..].iter().position(|byte| *byte == 0).unwrap();
        &query[12..12 + name + 5]
    }

    /// A response with one address or none (RFC 1035 4.1).
    fn answer(query: &[u8], ttl: Option<u32>) -> Vec<u8> {
        let count = u8::from(ttl.is_some());
        let head = [0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0];
        let mut answer = [&query[..2], &head, question(query)].concat();
        if let Some(ttl) = ttl {
            answer.extend([0xc0, 12, 0, 1, 0, 1]);
            answer.extend(ttl.to_le_bytes().iter().rev());
            answer.extend([0, 4, 192, 0, 2, 1]);
        }
        answer
    }

    /// A resolver by these records alone.
    fn by(records: &Records) -> Resolver {
        let options = ResolverOptions::from_records(records);
        let sources = NameSources::read(options).into();
        Resolver::new(sources, Registry::new().cells())
    }

    #[tokio::test]
    async fn addresses_are_kept_for_as_long_as_the_records_say() {
        for (ttl_mode, timeout, ttl, queries) in [
            (0, 3600, 0, 2),
            (1, 3600, 0, 1),
            (1, 0, 3600, 2),
            (2, 0, 3600, 2),
            (3, 3600, 0, 1),
        ] {
            let (at, asked) = server(Some(ttl)).await;
            let resolver = by(&Records {
                dns_nameservers: Some(at.to_string().into()),
                hostdb_ttl_mode: ttl_mode,
                hostdb_timeout: timeout,
                ..Records::default()
            });
            for _ in 0..2 {
                let found = resolver.addresses("a.test").await.unwrap();
                assert_eq!(found, [IpAddr::from([192, 0, 2, 1])]);
            }
            let asked = asked.load(Ordering::SeqCst);
            assert_eq!(asked, queries, "mode {ttl_mode}, {timeout} s");
        }
    }

    /// How long a silent name server is waited for.
    async fn patience(lookup: i64, retries: i64, total: i64) -> u64 {
        let (at, _) = server(None).await;
        let resolver = by(&Records {
            dns_nameservers: Some(at.to_string().into()),
            dns_lookup_timeout: lookup,
            dns_retries: retries,
            hostdb_lookup_timeout: total,
            ..Records::default()
        });
        let begun = tokio::time::Instant::now();
        assert!(resolver.addresses("a.test").await.is_err());
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_name_server_is_waited_for_as_the_records_say() {
        assert_eq!(patience(7, 0, 3600).await, 7);
        assert_eq!(patience(7, 1, 3600).await, 2 * 7);
        assert_eq!(patience(7, 3, 3600).await, 4 * 7);
        assert_eq!(patience(9, 1, 3600).await, 2 * 9);
        assert_eq!(patience(7, 3, 4).await, 4);
    }

    #[tokio::test]
    async fn name_servers_stand_in_the_file_that_the_record_names() {
        let resolver = by(&Records {
            dns_resolv_conf: "/nonexistent/other.conf".into(),
            ..Records::default()
        });
        let error = resolver.addresses("a.test").await.unwrap_err();
        assert!(error.to_string().contains("/nonexistent/other.conf"));
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"nameserver 192.0.2.53\n").unwrap();
        let sources = NameSources::read(ResolverOptions::from_records(&Records {
            dns_resolv_conf: file.path().to_str().unwrap().into(),
            ..Records::default()
        }));
        let (config, _) = name_servers(&sources).unwrap();
        let servers = config.name_servers().iter().map(|server| server.ip);
        assert_eq!(servers.collect::<Vec<_>>(), [IpAddr::from([192, 0, 2, 53])]);
    }
}
