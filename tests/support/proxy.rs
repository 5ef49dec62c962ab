//! A proxy of one event thread in this process, on a port of its own.

use arc_swap::ArcSwap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use strata::base::clock::{Clock, SystemClock};
use strata::cache::{Cache, CacheOptions, SpanOptions};
use strata::config::place::Place;
use strata::config::records::{Records, RecordsFile};
use strata::config::sni::SniFile;
use strata::config::ssl_multicert::{self, MulticertFile};
use strata::config::{Findings, cache_rules, connect_ports::ConnectPorts, ip_allow, remap, sni};
use strata::http::forwarding::ViaIdentity;
use strata::metrics::{Metric, Registry};
use strata::proxy::access_log::AccessLog;
use strata::proxy::cache_rules::CacheRules;
use strata::proxy::fill::{FillLimits, FillTable};
use strata::proxy::introduced::Introducers;
use strata::proxy::life::{LifeControl, Stage};
use strata::proxy::listener::{self, Dialect, Door, ListenOptions, Listeners};
use strata::proxy::snapshot::{Ruled, SnapshotParts};
use strata::proxy::tls::{OriginTls, SniRules, TlsOptions, TlsServer};
use strata::proxy::{Shared, Snapshot, WorkerContext, worker};
use strata::remap::{IpAllow, RemapOptions, Table};
use tokio::sync::Semaphore;

/// The process's own name in Via.
pub(crate) const UUID: &str = "0123-test";

/// A running proxy; it stops when dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    pub(crate) registry: Arc<Registry>,
    snapshot: Arc<ArcSwap<Snapshot>>,
    control: LifeControl,
    threads: Vec<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy with this remap.config and the default records.
    pub(crate) fn start(remap: &str) -> Self {
        Self::with("", remap)
    }

    /// A proxy with this records.config and this remap.config.
    pub(crate) fn with(records: &str, remap: &str) -> Self {
        Self::running(snapshot(records, remap), Box::new(|shared| shared))
    }

    /// As [`Self::with`], with this ip_allow.yaml.
    pub(crate) fn with_ip_allow(records: &str, remap: &str, ip_allow: &str) -> Self {
        let (file, findings) = ip_allow::parse("ip_allow.yaml", ip_allow.as_bytes());
        assert_eq!(findings.errors, []);
        let parts = SnapshotParts {
            ip_allow: IpAllow::new(&file),
            ..parts(records, remap)
        };
        Self::running(Snapshot::new(1, parts), Box::new(|shared| shared))
    }

    /// A proxy with this cache.config.
    pub(crate) fn with_cache_rules(cache_rules: &str, remap: &str) -> Self {
        let (file, findings) = cache_rules::parse("cache.config", cache_rules.as_bytes());
        assert_eq!(findings.errors, []);
        let parts = SnapshotParts {
            cache_rules: CacheRules::new(&file),
            ..parts("", remap)
        };
        Self::running(Snapshot::new(1, parts), Box::new(|shared| shared))
    }

    /// A proxy whose cache lies in a file of 64 MiB in `dir`.
    pub(crate) fn on_disk(records: &str, remap: &str, dir: &std::path::Path) -> Self {
        let mut span = SpanOptions::at(dir.join("span"));
        span.size = Some(64 << 20);
        let options = CacheOptions {
            spans: vec![span],
            ..CacheOptions::default()
        };
        let adapt = move |shared: Shared| {
            let cache = open(options, &shared.registry);
            Shared {
                cache: Some(cache),
                ..shared
            }
        };
        Self::running(snapshot(records, remap), Box::new(adapt))
    }

    /// A proxy of two event threads, the other one on an address of its own.
    pub(crate) fn of_two_threads(remap: &str) -> (Self, SocketAddr) {
        let (to, from) = std::sync::mpsc::channel();
        let keep = move |shared: Shared| {
            to.send(shared.clone()).unwrap();
            shared
        };
        let mut proxy = Self::running(snapshot("", remap), Box::new(keep));
        let listeners = listen();
        let thread = event_thread((listeners.sockets, None), 1000, from.recv().unwrap());
        proxy.threads.push(thread);
        (proxy, listeners.address)
    }

    /// A proxy that speaks TLS with origins as the records say; files are in
    /// `dir`.
    pub(crate) fn with_origin_tls(records: &str, remap: &str, dir: &std::path::Path) -> Self {
        Self::with_origin_names(records, remap, (dir, ""))
    }

    /// The same with this sni.toml.
    pub(crate) fn with_origin_names(
        records: &str,
        remap: &str,
        of: (&std::path::Path, &str),
    ) -> Self {
        let parts = secured(records, remap, of);
        Self::running(Snapshot::new(1, parts), Box::new(|shared| shared))
    }

    /// As [`Self::with_origin_tls`], with this ip_allow.yaml beside the directory.
    pub(crate) fn with_origin_tls_and_ip_allow(
        records: &str,
        remap: &str,
        (dir, ip_allow): (&std::path::Path, &str),
    ) -> Self {
        let (file, findings) = ip_allow::parse("ip_allow.yaml", ip_allow.as_bytes());
        assert_eq!(findings.errors, []);
        let parts = SnapshotParts {
            ip_allow: IpAllow::new(&file),
            ..secured(records, remap, (dir, ""))
        };
        Self::running(Snapshot::new(1, parts), Box::new(|shared| shared))
    }

    /// Reads TLS with origins anew, as the watcher of files does; whether it is
    /// another.
    pub(crate) fn renew_origin_tls(&self, dir: &std::path::Path) -> bool {
        let mut read = |now: &OriginTls, records: &Records| {
            let (tls, errors) = now.reread(records, dir).ok()?;
            errors.is_empty().then_some(tls)
        };
        let next = self.snapshot.load().renewed(&mut read);
        let is_new = next.is_some();
        if let Some(next) = next {
            self.snapshot.store(Arc::new(next));
        }
        is_new
    }

    /// As [`Self::reload`], with TLS with origins as the records say.
    pub(crate) fn reload_origin_tls(&self, records: &str, remap: &str, dir: &std::path::Path) {
        let generation = self.snapshot.load().generation + 1;
        let snapshot = Snapshot::new(generation, secured(records, remap, (dir, "")));
        self.snapshot.store(Arc::new(snapshot));
    }

    /// A proxy that speaks TLS with these certificates, whose files are in `dir`.
    pub(crate) fn over_tls(
        records: &str,
        remap: &str,
        (dir, multicert): (&std::path::Path, &str),
    ) -> Self {
        Self::secure(parts(records, remap), (dir, multicert))
    }

    /// A proxy of these parts that speaks TLS with these certificates.
    pub(crate) fn secure(parts: SnapshotParts, (dir, multicert): (&std::path::Path, &str)) -> Self {
        let snapshot = Snapshot::new(1, parts);
        let options = TlsOptions::from_records(&snapshot.records, dir);
        let tls = TlsServer::new(options).unwrap();
        assert_eq!(tls.load(&multicert_file(multicert)), Findings::default());
        let tls = Some(Arc::new(tls));
        Self::running(snapshot, Box::new(|shared| Shared { tls, ..shared }))
    }

    /// A proxy on a port that says whether HTTP/2 is spoken there.
    pub(crate) fn speaking(http2: Option<bool>, records: &str, remap: &str) -> Self {
        Self::on_port(http2, snapshot(records, remap), Box::new(|shared| shared))
    }

    /// As [`Self::speaking`], over TLS.
    pub(crate) fn over_tls_speaking(
        http2: Option<bool>,
        records: &str,
        (dir, multicert): (&std::path::Path, &str),
    ) -> Self {
        let snapshot = snapshot(records, "");
        let options = TlsOptions::from_records(&snapshot.records, dir);
        let tls = TlsServer::new(options).unwrap();
        assert_eq!(tls.load(&multicert_file(multicert)), Findings::default());
        let tls = Some(Arc::new(tls));
        Self::on_port(http2, snapshot, Box::new(|shared| Shared { tls, ..shared }))
    }

    /// A proxy with this snapshot, and shared things as `adapt` makes them.
    pub(crate) fn running(snapshot: Snapshot, adapt: Box<dyn FnOnce(Shared) -> Shared>) -> Self {
        Self::on_port(None, snapshot, adapt)
    }

    fn on_port(
        http2: Option<bool>,
        snapshot: Snapshot,
        adapt: Box<dyn FnOnce(Shared) -> Shared>,
    ) -> Self {
        let listeners = listen();
        let slots = usize::try_from(snapshot.records.net_max_connections_in).unwrap();
        let (control, life) = LifeControl::new();
        let registry = Registry::new();
        let snapshot = Arc::new(ArcSwap::from_pointee(snapshot));
        let shared = adapt(Shared {
            snapshot: Arc::clone(&snapshot),
            registry: Arc::clone(&registry),
            clock: Arc::new(SystemClock::new()),
            life,
            cache: Some(cache(&registry)),
            identity: Arc::new(identity()),
            own: [listeners.address].into(),
            servers: Arc::default(),
            fills: FillTable::new(FillLimits::default()),
            log: Arc::new(AccessLog::off()),
            tls: None,
        });
        let thread = event_thread((listeners.sockets, http2), slots, shared);
        Self {
            address: listeners.address,
            registry,
            snapshot,
            control,
            threads: vec![thread],
        }
    }

    /// Puts these files in force, as a reload does.
    pub(crate) fn reload(&self, records: &str, remap: &str) {
        let generation = self.snapshot.load().generation + 1;
        let snapshot = Snapshot::new(generation, parts(records, remap));
        self.snapshot.store(Arc::new(snapshot));
    }

    /// Puts these parts in force, as a reload does.
    pub(crate) fn reload_parts(&self, parts: SnapshotParts) {
        let generation = self.snapshot.load().generation + 1;
        self.snapshot
            .store(Arc::new(Snapshot::new(generation, parts)));
    }

    /// As [`Self::reload`], with this ip_allow.yaml.
    pub(crate) fn reload_ip_allow(&self, records: &str, remap: &str, ip_allow: &str) {
        let (file, findings) = ip_allow::parse("ip_allow.yaml", ip_allow.as_bytes());
        assert_eq!(findings.errors, []);
        self.reload_parts(SnapshotParts {
            ip_allow: IpAllow::new(&file),
            ..parts(records, remap)
        });
    }

    /// As [`Self::reload`], with this cache.config.
    pub(crate) fn reload_cache_rules(&self, records: &str, cache_rules: &str, remap: &str) {
        let (file, findings) = cache_rules::parse("cache.config", cache_rules.as_bytes());
        assert_eq!(findings.errors, []);
        let parts = SnapshotParts {
            cache_rules: CacheRules::new(&file),
            ..parts(records, remap)
        };
        let generation = self.snapshot.load().generation + 1;
        let snapshot = Snapshot::new(generation, parts);
        self.snapshot.store(Arc::new(snapshot));
    }

    /// A counter's value.
    pub(crate) fn counter(&self, metric: Metric) -> u64 {
        self.registry.get(metric)
    }

    /// Begins to drain.
    pub(crate) fn drain(&self) {
        self.control.advance(Stage::Draining);
    }

    /// Waits for the event threads to end by themselves.
    pub(crate) fn ended(mut self) {
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.control.advance(Stage::Stopped);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the proxy panicked"
            );
        }
    }
}

fn listen() -> Listeners {
    let options = ListenOptions {
        backlog: 128,
        shares: 1,
    };
    listener::listen("127.0.0.1:0".parse().unwrap(), options).unwrap()
}

fn event_thread(
    (sockets, http2): (Vec<TcpListener>, Option<bool>),
    slots: usize,
    shared: Shared,
) -> JoinHandle<()> {
    let dialect = Dialect {
        tls: shared.tls.is_some(),
        introduced: shared.snapshot.load().introducers != Introducers::default(),
        http2,
    };
    let doors = sockets.into_iter().map(|socket| Door { socket, dialect });
    let doors = doors.collect();
    std::thread::spawn(move || {
        let slots = Arc::new(Semaphore::new(slots));
        worker::run(doors, slots, || WorkerContext::new(shared)).unwrap();
    })
}

fn secured(records: &str, remap: &str, (dir, sni): (&std::path::Path, &str)) -> SnapshotParts {
    let parts = parts(records, remap);
    let names = sni_file(sni);
    let read = |records: &Records| {
        let (tls, errors) = OriginTls::read(records, dir, &names).unwrap();
        assert_eq!(errors, []);
        Some(Arc::new(tls))
    };
    let ruled = parts.ruled.into_iter().map(|one| Ruled {
        origin_tls: read(&one.records),
        ..one
    });
    SnapshotParts {
        origin_tls: read(&parts.records),
        ruled: ruled.collect(),
        ..parts
    }
}

/// A ssl_multicert.config without faults.
pub(crate) fn multicert_file(text: &str) -> MulticertFile {
    let (file, findings) = ssl_multicert::parse("ssl_multicert.config", text.as_bytes());
    assert_eq!(findings.errors, []);
    file
}

/// The snapshot of a records.config and a remap.config without faults.
pub(crate) fn snapshot(records: &str, remap: &str) -> Snapshot {
    Snapshot::new(1, parts(records, remap))
}

/// What [`snapshot`] is made from.
pub(crate) fn parts(records: &str, remap: &str) -> SnapshotParts {
    let (file, findings) = RecordsFile::parse("records.config", records.as_bytes());
    assert_eq!(findings.errors, []);
    let (records, findings) =
        Records::resolve(&|_| None, &std::collections::BTreeMap::new(), &file);
    assert_eq!(findings.errors, []);
    let (rules, findings) = remap::parse("remap.config", remap.as_bytes(), &|_| Ok(Vec::new()));
    assert_eq!(findings.errors, []);
    let (table, findings) = Table::build(&rules, &RemapOptions::from_records(&records));
    assert_eq!(findings.errors, []);
    let place = Place {
        file: "records.config".into(),
        line: 1,
        column: 1,
    };
    let (connect_ports, _) = ConnectPorts::parse(&records.http_connect_ports, &place);
    SnapshotParts {
        origin_tls: None,
        ruled: ruled(&records, &rules),
        sni: SniRules::default(),
        records,
        remap: table,
        connect_ports,
        cache_rules: CacheRules::default(),
        ip_allow: IpAllow::default(),
    }
}

/// TLS with origins is [`secured`]'s to add.
fn ruled(records: &Records, rules: &remap::RemapFile) -> Vec<Ruled> {
    let rules = rules.rules.iter();
    let rules = rules.filter(|rule| !rule.overrides.is_empty());
    let ruled = rules.map(|rule| Ruled {
        rule: rule.place.clone(),
        records: Arc::new(records.overridden(&rule.overrides)),
        origin_tls: None,
    });
    ruled.collect()
}

/// A sni.toml without faults.
fn sni_file(text: &str) -> SniFile {
    let (file, findings) = sni::parse("sni.toml", text.as_bytes());
    assert_eq!(findings.errors, []);
    file
}

/// As [`parts`], with this sni.toml, whose files are in `dir`.
pub(crate) fn named_parts(
    (records, remap): (&str, &str),
    dir: &std::path::Path,
    sni: &str,
) -> SnapshotParts {
    let parts = parts(records, remap);
    let (sni, errors) = SniRules::read(&sni_file(sni), &parts.records, dir);
    assert_eq!(errors, []);
    SnapshotParts { sni, ..parts }
}

fn identity() -> ViaIdentity {
    ViaIdentity {
        alias: "strata.test".to_owned(),
        uuid: UUID.to_owned(),
        product: "Strata".to_owned(),
    }
}

fn cache(registry: &Arc<Registry>) -> Arc<Cache> {
    open(CacheOptions::default(), registry)
}

/// Opens a cache, and waits until all of it can be read.
fn open(options: CacheOptions, registry: &Arc<Registry>) -> Arc<Cache> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let cache = Cache::open(options, clock, registry).0;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(cache.loaded());
    cache
}
