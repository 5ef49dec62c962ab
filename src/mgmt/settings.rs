//! The configuration of a running server: what holds, and how it changes.

mod report;
mod write;

use super::files::Digests;
use super::load::{self, Loaded, PORTS, STATE_DIR, Source};
use super::paths::RECORDS_NAME;
use super::verify;
use crate::base::clock::WallTime;
use crate::cache::plan::SpanPlan;
use crate::config::hosting::HostingFile;
use crate::config::records::{
    self, Alias, RecordSpec, Records, RecordsFile, Running, SetError, Update, settings, variable,
};
use crate::config::{ConfigError, Findings};
use crate::proxy::Snapshot;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

pub use report::{Origin, Reloaded, Setting, Shown, Status};
pub use write::WriteError;

/// Tells parts that keep a record of their own, such as the cache, that it
/// changed, and which rules of hosts hold.
pub type Apply = Box<dyn Fn(&Records, &HostingFile) + Send + Sync>;

/// What a start would be refused for with these records, though the files are
/// sound: what they name is not there.
pub type StartFaults = Box<dyn Fn(&Records) -> Vec<ConfigError> + Send + Sync>;

/// What a start with these files would keep of what is stored.
pub type Plan = Arc<dyn Fn(&Loaded) -> Vec<SpanPlan> + Send + Sync>;

/// Serves the certificates that the files name, and says what is wrong with
/// single ones.
pub type Certificates = Box<dyn Fn(&Loaded) -> Vec<ConfigError> + Send + Sync>;

/// What the rest of the server has to do with its settings.
pub struct Server {
    /// Called at each reload that holds.
    pub certificates: Certificates,
    /// Called with the records that hold, at each change.
    pub apply: Apply,
    /// Asked before a record is set.
    pub start_faults: StartFaults,
    /// Asked before a restart.
    pub plan: Plan,
}

/// Why a record was not set.
#[derive(Debug, thiserror::Error)]
pub enum SetFailure {
    /// The name or the value is not valid.
    #[error(transparent)]
    Invalid(#[from] SetError),
    /// It would break the line that it is written into.
    #[error("the value holds a line end or another control character")]
    Control,
    /// The value is valid, and the configuration as a whole is not with it.
    #[error("with this value the configuration has errors")]
    Refused(Findings),
    /// Commands would look for the socket of this server elsewhere.
    #[error(
        "{STATE_DIR} can't be changed while the server runs, as commands find the server by it: \
         stop the server, change records.config and start it again"
    )]
    StateDir,
    /// records.config could not be rewritten; the running value is the old.
    #[error("{0}; nothing has changed")]
    Write(#[from] WriteError),
}

/// A server's settings.
pub struct Settings {
    source: Source,
    boot: Records,
    /// The running values that the start gave.
    boot_running: Running,
    /// What was in the files of spans and volumes at the start.
    boot_files: Digests,
    snapshot: Arc<ArcSwap<Snapshot>>,
    server: Server,
    state: Mutex<State>,
}

struct State {
    loaded: Loaded,
    /// Running values that were written into records.config as well: the next
    /// reload takes them from there.
    written: BTreeSet<String>,
    /// All that was written into records.config since it was read.
    in_file: Running,
    loaded_at: WallTime,
    generation: u64,
    last_errors: Vec<ConfigError>,
}

/// A configuration that can be swapped in.
struct Next {
    loaded: Loaded,
    snapshot: Snapshot,
}

impl State {
    /// The running values that lie over the file.
    fn unwritten(&self) -> Running {
        let mut running = self.loaded.running.clone();
        running.retain(|name, _| !self.written.contains(name));
        running
    }

    fn mark(&mut self, values: &[Text], written: bool) {
        for (spec, text) in values {
            if written {
                self.written.insert(spec.name.to_owned());
                self.in_file.insert(spec.name.to_owned(), text.clone());
            } else {
                self.written.remove(spec.name);
            }
        }
    }
}

/// A record and the text to set it to.
type Text = (&'static RecordSpec, String);

/// The running values with these laid over them.
fn with(running: &Running, values: &[Text]) -> Running {
    let mut running = running.clone();
    let values = values.iter();
    running.extend(values.map(|(spec, text)| (spec.name.to_owned(), text.clone())));
    running
}

/// The faults that were not there before; those are asked for if there are any.
fn unlike(
    mut faults: Vec<ConfigError>,
    before: impl FnOnce() -> Vec<ConfigError>,
) -> Vec<ConfigError> {
    if !faults.is_empty() {
        let before = before();
        faults.retain(|fault| !before.contains(fault));
    }
    faults
}

/// The records that a name sets, with the text to set each to: the operator's
/// own, but for what an alias translates.
fn values(name: &str, value: &str) -> Result<Vec<Text>, SetError> {
    let parsed = settings(name, value)?.into_iter();
    let texts = parsed.map(|(spec, parsed)| match spec.name == name {
        true => (spec, value.to_owned()),
        false => (spec, parsed.to_string()),
    });
    Ok(texts.collect())
}

fn unheeded((spec, text): &Text) -> Option<String> {
    spec.unheeded(&spec.read(text).ok()?)
}

impl Settings {
    /// The settings of a server that starts with `loaded`, running values
    /// included.
    #[must_use]
    pub fn new(
        source: Source,
        loaded: Loaded,
        snapshot: Arc<ArcSwap<Snapshot>>,
        server: Server,
        now: WallTime,
    ) -> Self {
        let generation = snapshot.load().generation;
        Self {
            source,
            boot: loaded.records.clone(),
            boot_running: loaded.running.clone(),
            boot_files: report::at_start(&loaded),
            snapshot,
            server,
            state: Mutex::new(State {
                loaded,
                written: BTreeSet::new(),
                in_file: Running::new(),
                loaded_at: now,
                generation,
                last_errors: Vec::new(),
            }),
        }
    }

    /// The path that a name in the configuration means.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.source.path(name)
    }

    /// Reads every file again. Any error: nothing changes. None: one swap.
    ///
    /// # Errors
    ///
    /// Everything found, with places.
    pub fn reload(&self, now: WallTime) -> Result<Reloaded, Findings> {
        let mut state = self.state.lock();
        let loaded = load::load(&self.source, &state.unwritten());
        match loaded.and_then(|loaded| self.prepare(loaded)) {
            Ok(next) => {
                state.written.clear();
                state.in_file.clear();
                let mut report = self.swap(&mut state, next);
                state.loaded_at = now;
                let faulty = (self.server.certificates)(&state.loaded);
                report.warnings.extend(faulty);
                Ok(report)
            }
            Err(found) => {
                state.last_errors.clone_from(&found.errors);
                Err(found)
            }
        }
    }

    /// Reads and builds as a reload would, and changes nothing: what was read,
    /// and everything found.
    #[must_use]
    pub fn verify(&self) -> (Loaded, Findings) {
        let state = self.state.lock();
        let (loaded, mut found) = load::read(&self.source, &state.unwritten());
        match self.prepare(loaded.clone()) {
            Ok(next) => found.warnings.extend(next.loaded.warnings),
            Err(more) => found.extend(more),
        }
        (loaded, found)
    }

    /// What the files say for a start, with these texts in place of the files of
    /// spans and volumes, and who plans by it.
    ///
    /// # Errors
    ///
    /// Everything found.
    pub fn planned(
        &self,
        storage: Option<&str>,
        volumes: Option<&str>,
    ) -> Result<(Loaded, Plan), Findings> {
        let state = self.state.lock();
        let texts = load::storage_texts(&state.loaded.records, storage, volumes);
        let (loaded, found) = load::read_with(&self.source, &state.unwritten(), texts);
        match found.is_usable() {
            true => Ok((loaded, Arc::clone(&self.server.plan))),
            false => Err(found),
        }
    }

    /// What a start would say of the spans; see [`verify::spans`].
    #[must_use]
    pub fn verify_spans(
        &self,
        loaded: &Loaded,
        errors: &[ConfigError],
        was_root: bool,
    ) -> Vec<ConfigError> {
        verify::spans(&self.source, loaded, errors, was_root)
    }

    /// Sets a record, at once unless it needs a restart; `persist` writes it
    /// into records.config first.
    ///
    /// # Errors
    ///
    /// Whatever it is, neither the file nor the running value has changed.
    pub fn set(&self, name: &str, value: &str, persist: bool) -> Result<Setting, SetFailure> {
        if value.chars().any(char::is_control) {
            return Err(SetFailure::Control);
        }
        let values = values(name, value)?;
        let mut state = self.state.lock();
        let next = self.judged(&state, &values)?;
        if persist {
            write::write(&self.source.path(RECORDS_NAME), &values)?;
        }
        self.swap(&mut state, next);
        state.mark(&values, persist);
        Ok(self.setting(&state.loaded.records, &values, (name, persist)))
    }

    /// What a record shows: its value as configured, which for some takes a
    /// restart to hold, and where it comes from.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Shown> {
        let state = self.state.lock();
        if let Some(spec) = records::find(name) {
            return Some(self.shown(&state, spec));
        }
        if let Some(alias) = records::alias(name) {
            return self.shown_alias(&state, alias);
        }
        let text = state.loaded.records_file.others.get(name)?;
        Some(Shown {
            name: name.to_owned(),
            value: text.clone(),
            origin: Origin::File,
            update: Update::Reload,
        })
    }

    /// Every record of the table whose name the caller wants; by the name of
    /// another version, if only that is wanted.
    pub fn list(&self, wanted: impl Fn(&str) -> bool) -> Vec<Shown> {
        let state = self.state.lock();
        let specs = records::RECORDS.iter();
        let specs = specs.filter(|spec| wanted(spec.name));
        let shown = specs.map(|spec| self.shown(&state, spec));
        let only =
            |alias: &&Alias| wanted(alias.name) && !alias.specs().all(|spec| wanted(spec.name));
        let aliases = records::ALIASES.iter().filter(only);
        let aliases = aliases.filter_map(|alias| self.shown_alias(&state, alias));
        shown.chain(aliases).collect()
    }

    /// What is loaded, since when, and what waits.
    #[must_use]
    pub fn status(&self) -> Status {
        let state = self.state.lock();
        Status {
            dir: self.source.dir.clone(),
            generation: state.generation,
            loaded_at: state.loaded_at,
            at_restart: self.waiting(&state.loaded, &state.in_file),
            running: state.loaded.running.keys().cloned().collect(),
            last_errors: state.last_errors.clone(),
        }
    }

    /// What these values lead to.
    fn judged(&self, state: &State, values: &[Text]) -> Result<Next, SetFailure> {
        let refused = |errors: Vec<ConfigError>| match errors.is_empty() {
            true => Ok(()),
            false => Err(SetFailure::Refused(Findings {
                errors,
                warnings: Vec::new(),
            })),
        };
        let ports = values.iter().filter(|(spec, _)| spec.name == PORTS);
        refused(
            ports
                .flat_map(|(_, text)| load::port_faults(text))
                .collect(),
        )?;
        let next = self.with_running(state, with(&state.loaded.running, values));
        let next = next.map_err(SetFailure::Refused)?;
        let (new, old) = (&next.loaded.records, &state.loaded.records);
        if new.local_state_dir != old.local_state_dir {
            return Err(SetFailure::StateDir);
        }
        refused(self.load_faults(&state.unwritten(), values))?;
        let start_faults = &self.server.start_faults;
        refused(unlike(start_faults(new), || start_faults(old)))?;
        Ok(next)
    }

    /// What the next load would be refused for by these values, whatever else
    /// is wrong in the files.
    fn load_faults(&self, running: &Running, values: &[Text]) -> Vec<ConfigError> {
        let faults = load::faults(&self.source, &with(running, values));
        unlike(faults, || load::faults(&self.source, running))
    }

    /// What is loaded, with other running values.
    fn with_running(&self, state: &State, running: Running) -> Result<Next, Findings> {
        let (records, found) = self.source.resolve(&running, &state.loaded.records_file);
        if !found.is_usable() {
            return Err(found);
        }
        let loaded = Loaded {
            records,
            running,
            warnings: found.warnings,
            ..state.loaded.clone()
        };
        self.prepare(loaded)
    }

    /// The files and records that wait for a restart: what differs from the
    /// start, whichever reload brought it. A running value that no file holds
    /// does not wait: a restart forgets it.
    fn waiting(&self, loaded: &Loaded, in_file: &Running) -> Vec<String> {
        let files = report::changed_files(&self.boot_files, &report::at_start(loaded));
        let mut running = in_file.clone();
        running.extend(self.boot_running.clone());
        let (restarted, _) = self.source.resolve(&running, &loaded.records_file);
        let changed = self.boot.differences(&restarted);
        let records = changed.filter(|spec| spec.update == Update::Restart);
        let records = records.map(|spec| spec.name.to_owned());
        files.into_iter().chain(records).collect()
    }

    /// `records` with those that need a restart as they were at the start.
    fn in_force(&self, records: &Records) -> Records {
        let mut in_force = records.clone();
        for spec in self.boot.differences(records) {
            if spec.update == Update::Restart {
                let stored = spec.store_in(&mut in_force, &spec.value_in(&self.boot));
                debug_assert_eq!(stored, Ok(()), "the value held at the start");
            }
        }
        in_force
    }

    /// Builds all of what a swap needs, and swaps nothing.
    fn prepare(&self, mut loaded: Loaded) -> Result<Next, Findings> {
        let effective = Loaded {
            records: self.in_force(&loaded.records),
            ..loaded.clone()
        };
        let (snapshot, warnings) = load::build(&effective, Some(&self.snapshot.load()))?;
        loaded.warnings.extend(warnings);
        Ok(Next { loaded, snapshot })
    }

    /// The one swap.
    fn swap(&self, state: &mut State, next: Next) -> Reloaded {
        let Next { loaded, snapshot } = next;
        let report = Reloaded {
            generation: snapshot.generation,
            now: report::changes(&state.loaded, &loaded),
            at_restart: self.waiting(&loaded, &state.in_file),
            warnings: loaded.warnings.clone(),
        };
        let records = Arc::clone(&snapshot.records);
        state.generation = snapshot.generation;
        self.snapshot.store(Arc::new(snapshot));
        (self.server.apply)(&records, &loaded.hosting);
        state.loaded = loaded;
        state.last_errors.clear();
        report
    }

    fn setting(
        &self,
        records: &Records,
        values: &[Text],
        (name, written): (&str, bool),
    ) -> Setting {
        let waits = |spec: &RecordSpec| {
            let holds = spec.value_in(records) == spec.value_in(&self.boot);
            spec.update == Update::Restart && !holds
        };
        let of_start = |spec: &RecordSpec| self.boot_running.contains_key(spec.name);
        let specs = values.iter().map(|(spec, _)| spec);
        let variables = specs.clone().map(|spec| variable(spec.name));
        let mut variables = variables.chain([variable(name)]);
        Setting {
            at_restart: specs.clone().any(|spec| waits(spec)),
            of_start: specs.clone().any(|spec| of_start(spec)),
            written,
            overruled: variables.find(|name| self.source.environment.contains_key(name)),
            unheeded: values.iter().filter_map(unheeded).collect(),
        }
    }

    fn shown(&self, state: &State, spec: &'static RecordSpec) -> Shown {
        Shown {
            name: spec.name.to_owned(),
            value: spec.value_in(&state.loaded.records).printed(),
            origin: self.origin(state, spec),
            update: spec.update,
        }
    }

    /// Its records' value, as the alias says it, and what holds for the first.
    fn shown_alias(&self, state: &State, alias: &Alias) -> Option<Shown> {
        let first = self.shown(state, alias.specs().next()?);
        Some(Shown {
            name: alias.name.to_owned(),
            value: alias.text_in(&state.loaded.records),
            ..first
        })
    }

    fn origin(&self, state: &State, spec: &RecordSpec) -> Origin {
        let file: &RecordsFile = &state.loaded.records_file;
        let variable = variable(spec.name);
        if self.source.environment.contains_key(&variable) {
            Origin::Environment
        } else if state.loaded.running.contains_key(spec.name) && !state.written.contains(spec.name)
        {
            Origin::Running
        } else if state.written.contains(spec.name) || file.records.contains_key(spec.name) {
            Origin::File
        } else {
            Origin::Default
        }
    }
}

#[cfg(test)]
mod tests;
