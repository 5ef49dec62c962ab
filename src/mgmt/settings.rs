//! The configuration of a running server: what holds, and how it changes.

mod report;

use super::load::{self, Loaded, STORAGE_NAME, Source};
use super::paths::RECORDS_NAME;
use super::persist;
use super::verify;
use crate::base::clock::WallTime;
use crate::config::records::{
    self, Alias, RecordSpec, Records, RecordsFile, Running, SetError, Update, set_in_text,
    settings, variable,
};
use crate::config::{ConfigError, Findings};
use crate::proxy::Snapshot;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

pub use report::{Origin, Reloaded, Setting, Shown, Status};

/// Tells parts that keep a record of their own, such as the cache, that it
/// changed.
pub type Apply = Box<dyn Fn(&Records) + Send + Sync>;

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
    /// records.config could not be rewritten; the running value is the old.
    #[error(
        "records.config can't be rewritten: {0}; nothing has changed. \
             The server's user must be able to write the file and its directory"
    )]
    Write(#[from] std::io::Error),
}

/// A server's settings.
pub struct Settings {
    source: Source,
    boot: Records,
    /// What was in storage.config at the start.
    boot_storage: Option<u64>,
    snapshot: Arc<ArcSwap<Snapshot>>,
    apply: Apply,
    state: Mutex<State>,
}

struct State {
    loaded: Loaded,
    /// Running values that were written into records.config as well: the next
    /// reload takes them from there.
    written: BTreeSet<String>,
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
    fn mark(&mut self, values: &[(&'static RecordSpec, String)], written: bool) {
        for (spec, _) in values {
            if written {
                self.written.insert(spec.name.to_owned());
            } else {
                self.written.remove(spec.name);
            }
        }
    }
}

/// The records that a name sets, with the text to set each to: the operator's
/// own, but for what an alias translates.
fn values(name: &str, value: &str) -> Result<Vec<(&'static RecordSpec, String)>, SetError> {
    let parsed = settings(name, value)?.into_iter();
    let texts = parsed.map(|(spec, parsed)| match spec.name == name {
        true => (spec, value.to_owned()),
        false => (spec, parsed.to_string()),
    });
    Ok(texts.collect())
}

fn unheeded((spec, text): &(&'static RecordSpec, String)) -> Option<String> {
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
        apply: Apply,
        now: WallTime,
    ) -> Self {
        let generation = snapshot.load().generation;
        Self {
            source,
            boot: loaded.records.clone(),
            boot_storage: loaded.digests.get(STORAGE_NAME).copied(),
            snapshot,
            apply,
            state: Mutex::new(State {
                loaded,
                written: BTreeSet::new(),
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
        let mut running = state.loaded.running.clone();
        running.retain(|name, _| !state.written.contains(name));
        let loaded = load::load(&self.source, &running);
        match loaded.and_then(|loaded| self.prepare(&state, loaded)) {
            Ok(next) => {
                let report = self.swap(&mut state, next);
                state.written.clear();
                state.loaded_at = now;
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
        let (loaded, mut found) = load::read(&self.source, &state.loaded.running);
        match self.prepare(&state, loaded.clone()) {
            Ok(next) => found.warnings.extend(next.loaded.warnings),
            Err(more) => found.extend(more),
        }
        (loaded, found)
    }

    /// What a start would say of the paths of the spans; see [`verify::spans`].
    #[must_use]
    pub fn verify_spans(&self, loaded: &Loaded, was_root: bool) -> Vec<ConfigError> {
        verify::spans(&self.source, loaded, was_root)
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
        let mut running = state.loaded.running.clone();
        for (spec, text) in &values {
            running.insert(spec.name.to_owned(), text.clone());
        }
        let next = self.with_running(&state, running);
        let next = next.map_err(SetFailure::Refused)?;
        if persist {
            self.write(&values)?;
        }
        self.swap(&mut state, next);
        state.mark(&values, persist);
        Ok(self.setting(&values, name, persist))
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
            at_restart: self.waiting(&state.loaded),
            running: state.loaded.running.keys().cloned().collect(),
            last_errors: state.last_errors.clone(),
        }
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
        self.prepare(state, loaded)
    }

    /// The files and records that wait for a restart: what differs from the
    /// start, whichever reload brought it.
    fn waiting(&self, loaded: &Loaded) -> Vec<String> {
        let storage = loaded.digests.get(STORAGE_NAME).copied();
        let file = (storage != self.boot_storage).then_some(STORAGE_NAME);
        let changed = self.boot.differences(&loaded.records);
        let records = changed.filter(|spec| spec.update == Update::Restart);
        let names = file.into_iter().chain(records.map(|spec| spec.name));
        names.map(str::to_owned).collect()
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
    fn prepare(&self, state: &State, mut loaded: Loaded) -> Result<Next, Findings> {
        let effective = Loaded {
            records: self.in_force(&loaded.records),
            ..loaded.clone()
        };
        let (snapshot, warnings) = load::build(&effective, state.generation + 1)?;
        loaded.warnings.extend(warnings);
        Ok(Next { loaded, snapshot })
    }

    /// The one swap.
    fn swap(&self, state: &mut State, next: Next) -> Reloaded {
        let Next { loaded, snapshot } = next;
        let report = Reloaded {
            generation: snapshot.generation,
            now: report::changes(&state.loaded, &loaded),
            at_restart: self.waiting(&loaded),
            warnings: loaded.warnings.clone(),
        };
        let records = Arc::clone(&snapshot.records);
        state.generation = snapshot.generation;
        self.snapshot.store(Arc::new(snapshot));
        (self.apply)(&records);
        state.loaded = loaded;
        state.last_errors.clear();
        report
    }

    fn write(&self, values: &[(&'static RecordSpec, String)]) -> std::io::Result<()> {
        let path = self.source.path(RECORDS_NAME);
        let bytes = std::fs::read(&path)?;
        let text = String::from_utf8(bytes).map_err(std::io::Error::other)?;
        let text = values.iter().fold(text, |text, (spec, value)| {
            set_in_text(&text, spec.name, spec.kind, value)
        });
        persist::replace(&path, text.as_bytes())
    }

    fn setting(
        &self,
        values: &[(&'static RecordSpec, String)],
        name: &str,
        written: bool,
    ) -> Setting {
        let specs = values.iter().map(|(spec, _)| spec);
        let variables = specs.clone().map(|spec| variable(spec.name));
        let mut variables = variables.chain([variable(name)]);
        Setting {
            at_restart: specs.clone().any(|spec| spec.update == Update::Restart),
            written,
            overruled: variables.find(|name| self.source.environment.contains_key(name)),
            unheeded: values.iter().filter_map(unheeded).collect(),
        }
    }

    fn shown(&self, state: &State, spec: &'static RecordSpec) -> Shown {
        Shown {
            name: spec.name.to_owned(),
            value: spec.value_in(&state.loaded.records).to_string(),
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
