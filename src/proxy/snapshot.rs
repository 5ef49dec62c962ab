//! The configuration in force, whole and unchanging: what one reload swaps in.

use super::cache_rules::CacheRules;
use super::h1::ConnOptions;
use super::h2::H2Options;
use super::introduced::Introducers;
use super::origin::OriginOptions;
use super::resolve::{NameSources, ResolverOptions};
use super::settings;
use super::tls::{OriginTls, SniRules};
use crate::config::connect_ports::ConnectPorts;
use crate::config::place::Place;
use crate::config::records::Records;
use crate::http::policy::CachePolicy;
use crate::remap::{CompiledRule, ForwardPolicy, IpAllow, Table};
use std::collections::HashMap;
use std::sync::Arc;

/// What the files say, read and built by the caller.
#[derive(Debug, Default)]
pub struct SnapshotParts {
    /// Every record's value.
    pub records: Records,
    /// The rules of remap.config.
    pub remap: Table,
    /// Ports that CONNECT may reach (`http.connect_ports`).
    pub connect_ports: ConnectPorts,
    /// The rules of cache.config.
    pub cache_rules: CacheRules,
    /// The rules of the ip_allow file, or the built-in ones.
    pub ip_allow: IpAllow,
    /// TLS with origins; without, none of https is asked.
    pub origin_tls: Option<Arc<OriginTls>>,
    /// What holds for the requests of rules that override records.
    pub ruled: Vec<Ruled>,
    /// The rules of sni.toml.
    pub sni: SniRules,
}

/// What holds for the requests of a rule that overrides records.
#[derive(Debug)]
pub struct Ruled {
    /// Where the rule stands.
    pub rule: Place,
    /// Every record's value there.
    pub records: Arc<Records>,
    /// TLS with origins there.
    pub origin_tls: Option<Arc<OriginTls>>,
}

/// Everything that the files say and a reload can change. A transaction keeps
/// the one it began with.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Counts the reloads: 1 at the start.
    pub generation: u64,
    /// Every record's value.
    pub records: Arc<Records>,
    /// The rules of storing and reuse, from the records.
    pub policy: Arc<CachePolicy>,
    /// What of them is otherwise for some requests, from cache.config.
    pub cache_rules: Arc<CacheRules>,
    /// The bounds of a client connection, from the records.
    pub conn: ConnOptions,
    /// The bounds of an HTTP/2 connection, from the records.
    pub h2: H2Options,
    /// Ports that CONNECT may reach.
    pub connect_ports: ConnectPorts,
    /// Which URL goes where.
    pub remap: Arc<Table>,
    /// Who may do what, and which origins may be reached.
    pub ip_allow: Arc<IpAllow>,
    /// Who may choose the origin, from the records.
    pub forward: ForwardPolicy,
    /// Who is told Cache-Status, from the records.
    pub cache_status: ForwardPolicy,
    /// Who introduces clients, from the records.
    pub introducers: Introducers,
    /// Limits, timeouts and TLS of the origin side, from the records.
    pub origin: Arc<OriginOptions>,
    /// The same for origins that clients choose, to which our certificate is not
    /// shown.
    pub chosen_origin: Arc<OriginOptions>,
    /// What holds for clients that ask for a name over TLS.
    pub sni: Arc<SniRules>,
    /// What names are resolved by, from the records and the files they name.
    pub names: Arc<NameSources>,
    /// As it is for the requests of rules that override records.
    ruled: HashMap<Place, Arc<Snapshot>>,
}

impl SnapshotParts {
    /// Records alone: no rule, no port for CONNECT, the built-in ip_allow.
    #[must_use]
    pub fn of(records: Records) -> Self {
        Self {
            records,
            ..Self::default()
        }
    }
}

impl Snapshot {
    /// The snapshot of what the files say. Reads the files of the resolver:
    /// not for a thread that serves.
    #[must_use]
    pub fn new(generation: u64, parts: SnapshotParts) -> Self {
        let records = Arc::new(parts.records);
        let introducers = records.http_proxy_protocol_allowlist.as_deref();
        let names = ResolverOptions::from_records(&records);
        let mut snapshot = Self {
            generation,
            introducers: Introducers::of(introducers),
            names: Arc::new(NameSources::read(names)),
            policy: Arc::new(settings::cache_policy(&records)),
            cache_rules: Arc::new(parts.cache_rules),
            conn: settings::conn_options(&records),
            h2: settings::h2_options(&records),
            connect_ports: parts.connect_ports,
            remap: Arc::new(parts.remap),
            ip_allow: Arc::new(parts.ip_allow),
            chosen_origin: chosen_origin(&records, parts.origin_tls.as_ref()),
            origin: origin(&records, parts.origin_tls),
            sni: Arc::new(parts.sni),
            forward: clients(&records.http_forward_allow),
            cache_status: told_cache_status(&records),
            records,
            ruled: HashMap::new(),
        };
        snapshot.ruled = snapshot.by_rules(parts.ruled);
        snapshot
    }

    /// What holds for the requests of that rule.
    #[must_use]
    pub fn by_rule(self: &Arc<Self>, rule: &CompiledRule) -> Arc<Self> {
        let ruled = match rule.overrides() {
            [] => None,
            _ => self.ruled.get(rule.place()),
        };
        Arc::clone(ruled.unwrap_or(self))
    }

    /// What holds for the requests of the rule that stands there, if it
    /// overrides records.
    #[must_use]
    pub fn of_rule(&self, place: &Place) -> Option<&Self> {
        self.ruled.get(place).map(Arc::as_ref)
    }

    /// TLS with origins, and that of rules which override it.
    pub fn origin_tls(&self) -> impl Iterator<Item = &Arc<OriginTls>> {
        let ruled = self.ruled.values().map(Arc::as_ref);
        ruled
            .chain([self])
            .filter_map(|one| one.origin.tls.as_ref())
    }

    /// The same with TLS with origins as `read` gives it anew for records that
    /// name files of it; none where that is as it was.
    #[must_use]
    pub fn renewed(
        &self,
        read: &mut impl FnMut(&OriginTls, &Records) -> Option<OriginTls>,
    ) -> Option<Self> {
        let origin = self.reread(read);
        let mut ruled = self.ruled.clone();
        let mut made: HashMap<*const Self, Option<Arc<Self>>> = HashMap::new();
        let mut is_new = false;
        for snapshot in ruled.values_mut() {
            let next = made.entry(Arc::as_ptr(snapshot));
            let next =
                next.or_insert_with(|| Some(Arc::new(snapshot.secured(snapshot.reread(read)?))));
            is_new |= next.is_some();
            *snapshot = next.as_ref().unwrap_or(snapshot).clone();
        }
        if origin.is_none() && !is_new {
            return None;
        }
        let tls = origin.or_else(|| self.origin.tls.clone());
        let base = tls.map_or_else(|| self.clone(), |tls| self.secured(tls));
        Some(Self { ruled, ..base })
    }

    /// What is new of TLS with origins.
    fn reread(
        &self,
        read: &mut impl FnMut(&OriginTls, &Records) -> Option<OriginTls>,
    ) -> Option<Arc<OriginTls>> {
        let now = self.origin.tls.as_ref()?;
        let next = now
            .names_files(&self.records)
            .then(|| read(now, &self.records));
        next.flatten().filter(|next| *next != **now).map(Arc::new)
    }

    fn secured(&self, tls: Arc<OriginTls>) -> Self {
        Self {
            chosen_origin: chosen_origin(&self.records, Some(&tls)),
            origin: origin(&self.records, Some(tls)),
            ..self.clone()
        }
    }

    /// Rules that say the same share what they say.
    fn by_rules(&self, ruled: Vec<Ruled>) -> HashMap<Place, Arc<Self>> {
        let mut made: HashMap<*const Records, Arc<Self>> = HashMap::new();
        let mut by_rules = HashMap::new();
        for one in ruled {
            let shared = made.entry(Arc::as_ptr(&one.records));
            let snapshot = shared.or_insert_with(|| Arc::new(self.overridden(&one)));
            by_rules.insert(one.rule, Arc::clone(snapshot));
        }
        by_rules
    }

    fn overridden(&self, ruled: &Ruled) -> Self {
        let records = &ruled.records;
        Self {
            policy: Arc::new(settings::cache_policy(records)),
            chosen_origin: chosen_origin(records, ruled.origin_tls.as_ref()),
            origin: origin(records, ruled.origin_tls.clone()),
            cache_status: told_cache_status(records),
            records: Arc::clone(records),
            ..self.clone()
        }
    }
}

fn origin(records: &Records, tls: Option<Arc<OriginTls>>) -> Arc<OriginOptions> {
    Arc::new(OriginOptions {
        tls,
        ..OriginOptions::from_records(records)
    })
}

fn chosen_origin(records: &Records, tls: Option<&Arc<OriginTls>>) -> Arc<OriginOptions> {
    origin(records, tls.map(OriginTls::nameless))
}

fn told_cache_status(records: &Records) -> ForwardPolicy {
    match records.http_cache_status {
        0 => ForwardPolicy::nobody(),
        _ => clients(&records.http_cache_status_allow),
    }
}

/// The table of records has checked them; were it not so, nobody may.
fn clients(networks: &str) -> ForwardPolicy {
    ForwardPolicy::parse(networks).unwrap_or_else(|_| ForwardPolicy::nobody())
}
