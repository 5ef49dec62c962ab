//! From open spans and bound ports to threads that serve.

use super::announce::{self, Announcement, Judge};
use super::cache_options::{hosting, live_options, options_to_plan};
use super::certificates::{self, Watched};
use super::gauges;
use super::log_place::{LogError, log_options};
use super::management::{Management, ManagementThread};
use super::privileges::RunAs;
use super::readiness;
use super::running::Running;
use super::start::{Opened, StartError};
use super::workers;
use crate::base::prng::system_u64;
use crate::config::ConfigError;
use crate::config::records::Records;
use crate::device::check_directory;
use crate::http::forwarding::ViaIdentity;
use crate::metrics::{Collector, Metric};
use crate::mgmt::admin::Pages;
use crate::mgmt::control::{Control, Facts};
use crate::mgmt::life::Life;
use crate::mgmt::load::{self, Source};
use crate::mgmt::settings::{self, Settings};
use crate::mgmt::socket;
use crate::mgmt::whereabouts;
use crate::proxy::Shared;
use crate::proxy::access_log::AccessLog;
use crate::proxy::fill::{FillLimits, FillTable};
use crate::proxy::life::{Life as ProxyLife, LifeControl};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// A runtime for the thread that starts and stops the server.
pub(super) fn runtime() -> Result<Runtime, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(StartError::Thread)
}

/// Starts the threads; the server then runs.
pub(super) fn serve(mut opened: Opened) -> Result<Running, StartError> {
    let life = Arc::new(Life::default());
    let (proxy, proxy_life) = LifeControl::new();
    let proxy = Arc::new(proxy);
    let collector = collector(&opened);
    let ports = opened.bound.ports();
    let admin = opened.bound.admin_address();
    let shared = shared(&opened, proxy_life)?;
    let log = Arc::clone(&shared.log);
    let control = control(&opened, &collector, &life);
    let management = management(&mut opened, control, (proxy.clone(), log))?;
    let management = ManagementThread::start(management).map_err(StartError::Thread)?;
    if opened.loaded.records.http_wait_for_cache > 0 {
        runtime()?.block_on(opened.cache.judged());
    }
    let clients = std::mem::take(&mut opened.bound.clients);
    let workers = workers::start(clients, &shared, &life).map_err(StartError::Thread)?;
    announce::listening(&ports, admin);
    life.running();
    Ok(Running {
        ports,
        admin,
        state: opened.state,
        life,
        proxy,
        workers,
        management,
        cache: opened.cache,
        snapshot: opened.snapshot,
    })
}

/// The metrics, with what nobody adds to sampled at each reading.
fn collector(opened: &Opened) -> Arc<Collector> {
    let registry = Arc::clone(&opened.registry);
    let collector = Collector::new(registry, opened.clock.mono());
    let gauges = collector.gauges();
    let now = opened.clock.wall().as_secs();
    gauges.set(Metric::StartTime, now);
    gauges.set(Metric::ReconfigureTime, now);
    let cache = Arc::clone(&opened.cache);
    let clock = Arc::clone(&opened.clock);
    let (tls, snapshot) = (opened.tls.clone(), Arc::clone(&opened.snapshot));
    collector.before_scrape(move |cells| {
        cache.publish();
        if let Some(tls) = &tls {
            gauges::set_certificates(cells, tls);
        }
        gauges::set_origin_certificates(cells, &snapshot.load());
        gauges::set_cache_ready_time(cells, &cache, clock.wall());
        gauges::set_memory(cells);
    });
    Arc::new(collector)
}

fn management(
    opened: &mut Opened,
    control: Control,
    (proxy, log): (Arc<LifeControl>, Arc<AccessLog>),
) -> Result<Management, StartError> {
    control.publish_generation();
    let socket = socket::bind(opened.state.path())?;
    if let Err(error) = whereabouts::note(opened.state.path(), &opened.options.config_dir) {
        tracing::warn!(%error, "commands find this server only while local_state_dir stays");
    }
    Ok(Management {
        pages: pages(opened, &control),
        announcement: Announcement::of(opened, &control.life, &control.readiness),
        control,
        socket,
        admin: opened.bound.admin.take(),
        proxy,
        log,
        certificates: Watched {
            dir: opened.options.source().dir,
            tls: opened.tls.clone(),
            snapshot: Arc::clone(&opened.snapshot),
        },
        signals: opened.options.signals,
    })
}

fn judge(opened: &Opened, life: &Arc<Life>) -> Judge {
    let (life, cache) = (Arc::clone(life), Arc::clone(&opened.cache));
    Arc::new(move || readiness::judge(&life, &cache))
}

fn control(opened: &Opened, collector: &Arc<Collector>, life: &Arc<Life>) -> Control {
    let settings = Settings::new(
        opened.options.source(),
        opened.loaded.clone(),
        Arc::clone(&opened.snapshot),
        settings_server(opened),
        opened.clock.wall(),
    );
    Control {
        collector: Arc::clone(collector),
        clock: Arc::clone(&opened.clock),
        settings,
        snapshot: Arc::clone(&opened.snapshot),
        cache: Arc::clone(&opened.cache),
        life: Arc::clone(life),
        facts: Facts {
            started: opened.clock.wall(),
            ports: opened.bound.ports(),
            admin: opened.bound.admin_address(),
            was_root: opened.was_root,
        },
        readiness: judge(opened, life),
    }
}

/// What keeps a record of its own besides the snapshot, and what a start asks
/// of the system.
fn settings_server(opened: &Opened) -> settings::Server {
    let cache = Arc::clone(&opened.cache);
    let planner = Arc::clone(&cache);
    let source = opened.options.source();
    let planned = source.clone();
    let tls = opened.tls.clone();
    settings::Server {
        certificates: Box::new(move |loaded| match &tls {
            Some(tls) => {
                let found = tls.load(&loaded.multicert);
                found.errors.into_iter().chain(found.warnings).collect()
            }
            None => Vec::new(),
        }),
        apply: Box::new(move |records, hosts| {
            cache.configure(live_options(records));
            cache.host(hosting(hosts));
        }),
        start_faults: Box::new(move |records| start_faults(&source, records)),
        plan: Arc::new(move |loaded| planner.plan(&options_to_plan(&planned, loaded))),
    }
}

/// Why a start as root would be refused with these records.
fn start_faults(source: &Source, records: &Records) -> Vec<ConfigError> {
    let place = load::running_place();
    let user = &*records.admin_user_id;
    let user = RunAs::check(user)
        .err()
        .map(|error| place.error(user, error.to_string()));
    let logs = records.log_logfile_dir.as_deref().and_then(|dir| {
        let error = check_directory(&source.path(dir)).err()?;
        Some(place.error(dir, format!("proxy.config.log.logfile_dir: {error}")))
    });
    user.into_iter().chain(logs).collect()
}

fn pages(opened: &Opened, control: &Control) -> Pages {
    let snapshot = Arc::clone(&opened.snapshot);
    Pages {
        collector: Arc::clone(&control.collector),
        clock: Arc::clone(&opened.clock),
        readiness: Arc::clone(&control.readiness),
        certificates: certificates::page(opened.tls.clone()),
        is_host: Box::new(move |name| is_admin_host(&snapshot.load().records, name)),
    }
}

/// Whether `proxy.config.admin.hosts` lists the name.
fn is_admin_host(records: &Records, name: &str) -> bool {
    let hosts = records.admin_hosts.as_deref().unwrap_or("");
    let mut hosts = hosts.split_ascii_whitespace();
    hosts.any(|host| host.eq_ignore_ascii_case(name))
}

fn shared(opened: &Opened, life: ProxyLife) -> Result<Shared, StartError> {
    let log = log_options(&opened.options.source(), &opened.loaded);
    let path = log.path();
    let log = AccessLog::start(log).map_err(|error| LogError::of(path, &error))?;
    Ok(Shared {
        snapshot: Arc::clone(&opened.snapshot),
        registry: Arc::clone(&opened.registry),
        clock: Arc::clone(&opened.clock),
        life,
        cache: Some(Arc::clone(&opened.cache)),
        identity: Arc::new(identity()),
        own: opened.bound.own.as_slice().into(),
        servers: Arc::default(),
        fills: FillTable::new(FillLimits::default()),
        log: Arc::new(log),
        tls: opened.tls.clone(),
    })
}

/// Who this process is in Via.
fn identity() -> ViaIdentity {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.map(|name| name.trim().to_owned());
    let word = |name: &String| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
    ViaIdentity {
        alias: host.filter(word).unwrap_or_else(|| "strata".into()),
        uuid: format!("{:016x}", system_u64()),
        product: concat!("Strata/", env!("CARGO_PKG_VERSION")).into(),
    }
}
