//! TLS with clients as the files want it: at the start, and at each reload.

use crate::config::records::Records;
use crate::config::{ConfigError, Findings};
use crate::mgmt::load::{self, Loaded, PORTS, Source};
use crate::proxy::Snapshot;
use crate::proxy::tls::{OriginTls, TlsOptions, TlsServer};
use arc_swap::ArcSwap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the record is asked while nothing is watched.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// TLS as the files want it, and what is wrong with single certificates; none
/// where no port has it.
///
/// # Errors
///
/// The system refuses what every handshake needs.
pub(super) fn load(
    source: &Source,
    loaded: &Loaded,
) -> Result<(Option<Arc<TlsServer>>, Findings), ConfigError> {
    let is_wanted = loaded.ports.ports.iter().any(|port| port.tls);
    let options = TlsOptions::from_records(&loaded.records, &source.dir);
    if !is_wanted || options.versions.is_empty() {
        return Ok((None, Findings::default()));
    }
    let tls = TlsServer::new(options).map_err(|error| {
        let place = load::place_of(&loaded.running, &loaded.records_file, PORTS);
        place.error("ssl", error.to_string())
    })?;
    let found = tls.load(&loaded.multicert);
    Ok((Some(Arc::new(tls)), found))
}

/// What a start makes of such faults
/// (`proxy.config.ssl.server.multicert.exit_on_load_fail`).
pub(super) fn judged(loaded: &Loaded, mut found: Findings) -> Findings {
    if loaded.records.ssl_server_multicert_exit_on_load_fail == 0 {
        found.warnings.append(&mut found.errors);
    }
    found
}

/// TLS for a start.
///
/// # Errors
///
/// What the start is refused for.
pub(super) fn open(source: &Source, loaded: &Loaded) -> Result<Option<Arc<TlsServer>>, Findings> {
    let (tls, found) = load(source, loaded).map_err(|error| Findings {
        errors: vec![error],
        warnings: Vec::new(),
    })?;
    let found = judged(loaded, found);
    if !found.is_usable() {
        return Err(found);
    }
    for warning in &found.warnings {
        tracing::warn!("{warning}");
    }
    Ok(tls)
}

/// The admin page of the certificates: those that are served, and what is wrong
/// with the others.
pub(super) fn page(tls: Option<Arc<TlsServer>>) -> Box<dyn Fn() -> String + Send> {
    Box::new(move || {
        let served = tls.as_ref().map(|tls| tls.certificates());
        let faults = tls.as_ref().map(|tls| tls.faults()).unwrap_or_default();
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let served = served.unwrap_or_default();
        serde_json::json!({ "certificates": served, "faults": faults }).to_string()
    })
}

/// Says which files root could read and the server's user can't: to be asked
/// when root was given up, better than when a certificate has expired.
pub(super) fn warn_of_lost(dir: &Path, tls: Option<&TlsServer>, snapshot: &Snapshot) {
    let lost = tls.map(TlsServer::refresh).unwrap_or_default();
    let lost = lost.iter().map(ToString::to_string);
    for what in lost.chain(renewed(dir, snapshot).err()) {
        tracing::warn!(
            "{what}; let the user of proxy.config.admin.user_id read it, else it is not renewed"
        );
    }
}

/// The configuration with the certificates for origins that their files hold
/// now, if that is another.
///
/// # Errors
/// What is wrong with a file.
fn renewed(dir: &Path, snapshot: &Snapshot) -> Result<Option<Snapshot>, String> {
    let mut fault = None;
    let next = snapshot.renewed(&mut |now, records| match reread(now, records, dir) {
        Ok(tls) => Some(tls),
        Err(error) => {
            fault = Some(format!("TLS with origins: {error}"));
            None
        }
    });
    fault.map_or(Ok(next), Err)
}

fn reread(now: &OriginTls, records: &Records, dir: &Path) -> Result<OriginTls, String> {
    let (tls, faults) = now.reread(records, dir).map_err(|e| e.to_string())?;
    faults
        .first()
        .map_or(Ok(tls), |fault| Err(fault.to_string()))
}

/// The certificates whose files are looked at now and again.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    /// Where the configuration lies.
    pub(super) dir: PathBuf,
    pub(super) tls: Option<Arc<TlsServer>>,
    pub(super) snapshot: Arc<ArcSwap<Snapshot>>,
}

impl Watched {
    /// Uses each file that has changed, and logs each fault once; for ever.
    pub(super) async fn watch(self) {
        let mut told = None;
        loop {
            self.interval().await;
            let watched = self.clone();
            // Files are read: not on the thread that answers operators.
            let looked = tokio::task::spawn_blocking(move || watched.look()).await;
            let (faults, origins) = looked.unwrap_or_default();
            for fault in faults {
                tracing::warn!("{fault}");
            }
            if let Some(fault) = origins.as_ref().filter(|_| told != origins) {
                tracing::warn!("{fault}; what was read before is used on");
            }
            told = origins;
        }
    }

    /// What is newly wrong with clients' certificates, and what with those for
    /// origins.
    fn look(&self) -> (Vec<ConfigError>, Option<String>) {
        let faults = self.tls.as_ref().map(|tls| tls.refresh());
        let before = self.snapshot.load_full();
        let fault = match renewed(&self.dir, &before) {
            Ok(next) => {
                // A reload meanwhile has read them too.
                next.map(|next| self.snapshot.compare_and_swap(&before, Arc::new(next)));
                None
            }
            Err(fault) => Some(fault),
        };
        (faults.unwrap_or_default(), fault)
    }

    /// Waits as long as the record says, which may change meanwhile.
    async fn interval(&self) {
        let mut waited = Duration::ZERO;
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            waited += ASK_EVERY;
            let records = &self.snapshot.load().records;
            let interval = u64::try_from(records.strata_ssl_certificate_check_interval);
            let interval = Duration::from_secs(interval.unwrap_or(0));
            if !interval.is_zero() && waited >= interval {
                return;
            }
        }
    }
}
