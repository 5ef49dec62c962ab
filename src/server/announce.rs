//! What the log tells of a start: `listening` at once, `ready` once it is.

use super::start::Opened;
use crate::cache::Cache;
use crate::mgmt::admin::Readiness;
use crate::mgmt::life::{Life, Phase};
use crate::proxy::Snapshot;
use arc_swap::ArcSwap;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Whether the server is ready now.
pub(super) type Judge = Arc<dyn Fn() -> Readiness + Send + Sync>;

/// How often a server without a usable span is judged again.
const AGAIN: Duration = Duration::from_secs(1);

/// Says once that the server is ready, in the sense of `/readyz`.
pub(super) struct Announcement {
    ports: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
    spans_configured: usize,
    cache: Arc<Cache>,
    snapshot: Arc<ArcSwap<Snapshot>>,
    life: Arc<Life>,
    judge: Judge,
}

/// Says that clients are accepted from now on.
pub(super) fn listening(ports: &[SocketAddr], admin: Option<SocketAddr>) {
    tracing::info!(?ports, admin = admin.map(display), "listening");
}

impl Announcement {
    /// What is to be said of that server.
    pub(super) fn of(opened: &Opened, life: &Arc<Life>, judge: &Judge) -> Self {
        Self {
            ports: opened.bound.ports(),
            admin: opened.bound.admin_address(),
            spans_configured: opened.loaded.storage.spans.len(),
            cache: Arc::clone(&opened.cache),
            snapshot: Arc::clone(&opened.snapshot),
            life: Arc::clone(life),
            judge: Arc::clone(judge),
        }
    }

    /// Ends when `ready` is said, or the server is on its way out. What is
    /// missing once every stripe is judged is said once as well.
    pub(super) async fn make(self) {
        let mut phases = self.life.watch();
        // An error would mean that the server is gone: judged so below.
        drop(phases.wait_for(|phase| *phase > Phase::Starting).await);
        self.cache.judged().await;
        let mut told = false;
        loop {
            let now = (self.judge)();
            if now.is_ready() {
                return self.log_ready();
            }
            if now.phase != Phase::Running {
                return;
            }
            if !std::mem::replace(&mut told, true) {
                tracing::warn!("not ready: {}", now.reasons.join("; "));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn log_ready(&self) {
        let spans = self.cache.volumes_in_use();
        tracing::info!(
            ports = ?self.ports,
            admin = self.admin.map(display),
            spans = spans.len(),
            spans_configured = self.spans_configured,
            volumes = display(volumes(&spans)),
            ram_bytes = self.cache.ram_status().bytes_total,
            generation = self.snapshot.load().generation,
            "ready"
        );
    }
}

/// The volumes that the spans in use have stripes of, by commas. Volume 0 is
/// there without any: what is stored in RAM alone is of it.
fn volumes(spans: &[BTreeSet<u32>]) -> String {
    let mut volumes: BTreeSet<u32> = spans.iter().flatten().copied().collect();
    if volumes.is_empty() {
        volumes.insert(0);
    }
    let volumes: Vec<_> = volumes.iter().map(ToString::to_string).collect();
    volumes.join(",")
}
