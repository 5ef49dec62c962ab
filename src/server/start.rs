//! The order in which a server starts, and what may stop it from starting.
//!
//! Files → state directory → certificates → ports → spans → user → threads. What needs root
//! comes before the user is changed; threads come after.

use super::cache_options::cache_options;
use super::certificates;
use super::limits;
use super::log_place::{self, LOGFILE_DIR, LogError};
use super::options::Options;
use super::ports::{self, Bound, PortErrors};
use super::privileges::{self, PrivilegeError, RunAs};
use super::readiness;
use super::running::Running;
use super::serve;
use super::state::{StateDir, StateError};
use super::workers;
use crate::base::clock::{Clock, SystemClock};
use crate::cache::check::{SpanCheck, check_spans};
use crate::cache::plan::SpanPlan;
use crate::cache::{self, Cache, SpanCommandError, SpanName, SpanReport};
use crate::config::place::Place;
use crate::config::records::{Records, variable};
use crate::config::{ConfigError, Findings};
use crate::device::check_directory;
use crate::metrics::Registry;
use crate::mgmt;
use crate::mgmt::load::{self, Loaded, PORTS, STATE_DIR, Source};
use crate::mgmt::paths::RECORDS_NAME;
use crate::mgmt::socket::SocketError;
use crate::proxy::Snapshot;
use crate::proxy::tls::TlsServer;
use arc_swap::ArcSwap;
use std::io;
use std::sync::Arc;

/// The record of the user to become.
const USER_ID: &str = "proxy.config.admin.user_id";

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The files have errors; each is named with file, line and column.
    #[error("{}", lines(.0))]
    Config(Findings),
    /// The state directory.
    #[error(transparent)]
    State(#[from] StateError),
    /// Ports.
    #[error(transparent)]
    Port(#[from] PortErrors),
    /// The user to become.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// Files that root made could not be given to that user.
    #[error("cannot give the state directory to the server's user: {0}")]
    Give(io::Error),
    /// The control socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// A thread, or what it waits in.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The access log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A span that was to be made anew.
    #[error(transparent)]
    Span(#[from] SpanCommandError),
    /// `http.wait_for_cache` 2 or 3 wants spans that are not there.
    #[error("proxy.config.http.wait_for_cache {wanted}: {}", refused.join("; "))]
    Cache {
        /// The record's value.
        wanted: i64,
        /// Why spans were refused.
        refused: Vec<String>,
    },
}

fn lines(found: &Findings) -> String {
    let errors: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
    errors.join("\n")
}

/// Reads and checks the files as a start would, and judges what they name as
/// far as that changes nothing: the spans, by what lies on them, the state
/// directory, the user to become and where it logs. Starts nothing.
///
/// # Errors
///
/// Everything found.
pub fn verify(options: &Options) -> Result<Loaded, Findings> {
    let source = options.source();
    let (mut loaded, mut found) = load::read(&source, &options.running());
    match load::build(&loaded, None) {
        Ok((_, warnings)) => found.warnings.extend(warnings),
        Err(more) => found.extend(more),
    }
    let spans = mgmt::verify::spans(&source, &loaded, &found.errors, false);
    found.errors.extend(spans);
    found.errors.extend(state_fault(&source, &loaded));
    found.errors.extend(user_fault(options, &loaded));
    found.errors.extend(log_fault(options, &loaded));
    match certificates::load(&source, &loaded) {
        Ok((_, faulty)) => found.extend(certificates::judged(&loaded, faulty)),
        Err(error) => found.errors.push(error),
    }
    found.warnings.extend(unheeded_user(options, &loaded));
    found.sort();
    if !found.is_usable() {
        return Err(found);
    }
    loaded.warnings = found.warnings;
    Ok(loaded)
}

fn state_fault(source: &Source, loaded: &Loaded) -> Option<ConfigError> {
    let name = &*loaded.records.local_state_dir;
    let error = check_directory(&source.path(name)).err()?;
    let place = load::place_of(&loaded.running, &loaded.records_file, STATE_DIR);
    let what = format!("proxy.config.local_state_dir: {error}");
    Some(place.error(name, what))
}

fn log_fault(options: &Options, loaded: &Loaded) -> Option<ConfigError> {
    let run_as = if options.change_user {
        RunAs::resolve(&loaded.records.admin_user_id).ok()?
    } else {
        RunAs::Unchanged
    };
    let error = log_place::fault(&options.source(), loaded, &run_as)?;
    let place = load::place_of(&loaded.running, &loaded.records_file, LOGFILE_DIR);
    let dir = loaded.records.log_logfile_dir.as_deref();
    Some(place.error(dir.unwrap_or_default(), error.to_string()))
}

fn user_fault(options: &Options, loaded: &Loaded) -> Option<ConfigError> {
    let user = &*loaded.records.admin_user_id;
    let resolved = options.change_user.then(|| RunAs::resolve(user))?;
    let error = resolved.err()?;
    let place = load::place_of(&loaded.running, &loaded.records_file, USER_ID);
    Some(place.error(user, error.to_string()))
}

/// Empties the spans of the configuration, that are ours; nothing may run on
/// them.
///
/// # Errors
///
/// `Config`, or `State` if a server runs.
pub fn clear(options: &Options) -> Result<Vec<SpanReport>, StartError> {
    let (loaded, _) = load_and_build(options).map_err(StartError::Config)?;
    let source = options.source();
    let state = StateDir::lock(&source.path(&*loaded.records.local_state_dir))?;
    let mut cache_options = cache_options(&source, &loaded, state.path().to_owned());
    cache_options.clear = true;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let (cache, reports) = Cache::open(cache_options, clock, &Registry::new());
    serve::runtime()?.block_on(cache.shutdown());
    Ok(reports)
}

/// Checks the spans of the configuration, as [`crate::cache::check`] does;
/// `each` is told of one after the other.
///
/// # Errors
///
/// `Config`, `Privilege`, or `State` if a server runs.
pub fn check(options: &Options, each: impl FnMut(SpanCheck)) -> Result<(), StartError> {
    let (loaded, _) = load_and_build(options).map_err(StartError::Config)?;
    let source = options.source();
    let run_as = run_as(options, &loaded.records)?;
    let state = StateDir::lock(&source.path(&*loaded.records.local_state_dir))?;
    run_as.give(state.path()).map_err(StartError::Give)?;
    let cache_options = cache_options(&source, &loaded, state.path().to_owned());
    check_spans(&cache_options).for_each(each);
    Ok(())
}

/// Makes an empty span of one of storage.config, named by its path or its
/// `id=`, while no server runs; with `force`, whatever it holds.
///
/// # Errors
///
/// `Config`, `State` if a server runs, `Privilege`, and `Span` with what is
/// there.
pub fn init_span(options: &Options, span: &str, force: bool) -> Result<(), StartError> {
    let (loaded, _) = load_and_build(options).map_err(StartError::Config)?;
    let source = options.source();
    let run_as = run_as(options, &loaded.records)?;
    let state = StateDir::lock(&source.path(&*loaded.records.local_state_dir))?;
    let cache_options = cache_options(&source, &loaded, state.path().to_owned());
    let name = SpanName {
        text: span.to_owned(),
        path: source.path(span),
    };
    let made = cache::init_span(&cache_options, &name, force);
    run_as.give(state.path()).map_err(StartError::Give)?;
    Ok(made?)
}

/// What a start would keep of what is stored, and what it would drop, while no
/// server runs; `storage` and `volumes` are taken in place of their files.
///
/// # Errors
///
/// Everything found in the files.
pub fn plan_storage(
    options: &Options,
    storage: Option<&str>,
    volumes: Option<&str>,
) -> Result<Vec<SpanPlan>, Findings> {
    let (source, running) = (options.source(), options.running());
    let records = load::records_of(&options.config_dir, options.environment.clone());
    let texts = load::storage_texts(&records, storage, volumes);
    let (loaded, found) = load::read_with(&source, &running, texts);
    match found.is_usable() {
        true => {
            let state = source.path(&*loaded.records.local_state_dir);
            let options = cache_options(&source, &loaded, state);
            Ok(cache::plan::plan_storage(&options))
        }
        false => Err(found),
    }
}

/// What is there before any thread of ours is.
pub(super) struct Opened {
    pub(super) options: Options,
    pub(super) loaded: Loaded,
    pub(super) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(super) state: StateDir,
    pub(super) bound: Bound,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) registry: Arc<Registry>,
    pub(super) cache: Arc<Cache>,
    pub(super) tls: Option<Arc<TlsServer>>,
    /// Whether root was given up.
    pub(super) was_root: bool,
}

/// Starts a server.
///
/// # Errors
///
/// Whatever keeps it from serving as configured; nothing is left behind but
/// the state directory.
pub fn start(options: Options) -> Result<Running, StartError> {
    let source = options.source();
    let (loaded, snapshot) = load_all(&options)?;
    let run_as = run_as(&options, &loaded.records)?;
    raise_limits();
    let state = StateDir::lock(&source.path(&*loaded.records.local_state_dir))?;
    let tls = certificates::open(&source, &loaded).map_err(StartError::Config)?;
    let threads = workers::count(&loaded.records);
    let bound = ports::bind(&loaded, threads)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let registry = Registry::new();
    let cache = open_cache(&source, &loaded, &state, (&clock, &registry))?;
    run_as.give(state.path()).map_err(StartError::Give)?;
    run_as.become_it()?;
    warn_if_unreadable(&source);
    if matches!(run_as, RunAs::User { .. }) {
        certificates::warn_of_lost(&source.dir, tls.as_deref(), &snapshot);
    }
    let opened = Opened {
        options,
        loaded,
        snapshot: Arc::new(ArcSwap::from_pointee(snapshot)),
        state,
        bound,
        clock,
        registry,
        cache,
        tls,
        was_root: matches!(run_as, RunAs::User { .. }),
    };
    serve::serve(opened)
}

fn load_and_build(options: &Options) -> Result<(Loaded, Snapshot), Findings> {
    let mut loaded = load::load(&options.source(), &options.running())?;
    let (snapshot, warnings) = load::build(&loaded, None)?;
    loaded.warnings.extend(warnings);
    let user = unheeded_user(options, &loaded);
    loaded.warnings.extend(user);
    Ok((loaded, snapshot))
}

fn load_all(options: &Options) -> Result<(Loaded, Snapshot), StartError> {
    let all = load_and_build(options).map_err(StartError::Config)?;
    for warning in &all.0.warnings {
        tracing::warn!("{warning}");
    }
    let variable = variable(PORTS);
    if let Some(port) = options.port
        && options.environment.contains_key(&variable)
    {
        tracing::warn!("-p {port} has no effect: ${variable} goes before it");
    }
    Ok(all)
}

/// A user that is asked for and can't be had, which only root can change to.
fn unheeded_user(options: &Options, loaded: &Loaded) -> Option<ConfigError> {
    let variable = variable(USER_ID);
    let place = if options.environment.contains_key(&variable) {
        Place {
            file: format!("${variable}").into(),
            line: 1,
            column: 1,
        }
    } else {
        let written = loaded.records_file.records.get(USER_ID)?;
        written.place.clone()
    };
    let user = &*loaded.records.admin_user_id;
    let what = options.change_user.then(|| privileges::unheeded(user))??;
    let mut warning = place.error(user, what);
    warning.help = Some("start it as root, or write #-1".to_owned());
    Some(warning)
}

fn run_as(options: &Options, records: &Records) -> Result<RunAs, StartError> {
    if !options.change_user {
        return Ok(RunAs::Unchanged);
    }
    let run_as = RunAs::resolve(&records.admin_user_id)?;
    match &run_as {
        RunAs::StayRoot => tracing::warn!("stays root, by proxy.config.admin.user_id #-1"),
        RunAs::User { name, .. } => tracing::info!(user = name, "gives up root for"),
        RunAs::Unchanged => {}
    }
    Ok(run_as)
}

/// The user may not be let into a directory that root could read; better to
/// know at the start than at the first reload.
fn warn_if_unreadable(source: &Source) {
    let records = source.path(RECORDS_NAME);
    match std::fs::File::open(&records) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let file = records.display();
            tracing::warn!(%file, "proxy.config.admin.user_id can't read this: reloads will fail");
        }
        Ok(_) | Err(_) => {}
    }
}

fn raise_limits() {
    match limits::raise_open_files() {
        Ok(limit) => tracing::debug!(limit, "open files"),
        Err(error) => tracing::warn!(%error, "the limit of open files stays as it is"),
    }
}

fn open_cache(
    source: &Source,
    loaded: &Loaded,
    state: &StateDir,
    (clock, registry): (&Arc<dyn Clock>, &Arc<Registry>),
) -> Result<Arc<Cache>, StartError> {
    let options = cache_options(source, loaded, state.path().to_owned());
    let spans = options.spans.len();
    let (cache, reports) = Cache::open(options, Arc::clone(clock), registry);
    readiness::log_spans(&reports);
    let refused = readiness::refused(&reports);
    let wanted = loaded.records.http_wait_for_cache;
    let fails = match wanted {
        2 => spans > 0 && refused.len() == spans,
        3 => !refused.is_empty(),
        _ => false,
    };
    if fails {
        return Err(StartError::Cache { wanted, refused });
    }
    Ok(cache)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_server_in_this_process_has_ports_of_its_own_and_stops() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("remap.config"), "").unwrap();
        let records = "CONFIG proxy.config.admin.listen STRING 127.0.0.1:0\n";
        std::fs::write(dir.path().join("records.config"), records).unwrap();
        let options = Options {
            port: Some(0),
            ..Options::in_process(dir.path())
        };
        let running = start(options).unwrap();
        let port = running.ports[0];
        assert!(running.admin.is_some());
        TcpStream::connect(port).unwrap();
        running.stop().unwrap();
        assert!(TcpStream::connect(port).is_err());
        StateDir::lock(&dir.path().join("var")).unwrap();
    }
}
