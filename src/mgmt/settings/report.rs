//! What changes of the configuration are told as.

use crate::base::clock::WallTime;
use crate::config::ConfigError;
use crate::config::records::Update;
use crate::mgmt::files::Digests;
use crate::mgmt::load::{Loaded, STORAGE_NAME};
use crate::mgmt::paths::RECORDS_NAME;
use std::path::PathBuf;

/// Where a record's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A variable of the server's environment.
    Environment,
    /// `config set`, until the server restarts.
    Running,
    /// records.config.
    File,
    /// The table.
    Default,
}

impl Origin {
    /// The word of `config get -f json`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Running => "running",
            Self::File => "file",
            Self::Default => "default",
        }
    }
}

/// A record as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// Its value as configured, as `traffic_line -r` prints it.
    pub value: String,
    /// Where that comes from.
    pub origin: Origin,
    /// When a change of it holds.
    pub update: Update,
}

/// What became of a record that was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Whether the value waits for a restart.
    pub at_restart: bool,
    /// Whether the start's command line says it too, over the file: so will a
    /// restart with that.
    pub of_start: bool,
    /// Whether records.config has it now; without, a restart forgets it.
    pub written: bool,
    /// The variable of the environment that the old value comes from, and
    /// stays with.
    pub overruled: Option<String>,
    /// What to say of values that have no effect.
    pub unheeded: Vec<String>,
}

impl Setting {
    /// What the operator should know, a line each; nothing if the value holds.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let restart = self.restart_note().map(str::to_owned);
        let overruled = self.overruled.as_ref();
        let overruled = overruled.map(|name| format!("overruled by the environment's {name}"));
        let notes = restart.into_iter().chain(overruled);
        notes.chain(self.unheeded.iter().cloned()).collect()
    }

    const fn restart_note(&self) -> Option<&'static str> {
        match (self.at_restart, self.written) {
            (true, true) if self.of_start => {
                Some("holds once the server is started without -p, which overrules records.config")
            }
            (false, _) => None,
            (true, true) => Some("holds after a restart"),
            (true, false) => Some(
                "has no effect: only a restart would take it, and forgets it; \
                 traffic_line -s writes it to records.config",
            ),
        }
    }
}

/// What a reload changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Reloaded {
    /// The number of the configuration now in force.
    pub generation: u64,
    /// Files and records that hold now.
    pub now: Vec<String>,
    /// Files and records that hold after a restart, whenever they changed.
    pub at_restart: Vec<String>,
    /// What the operator should know.
    pub warnings: Vec<ConfigError>,
}

/// The files that only a start takes up, and what is in each.
pub(super) fn at_start(loaded: &Loaded) -> Digests {
    let names = [STORAGE_NAME, &*loaded.records.cache_volume_filename];
    let digests = loaded.digests.iter();
    let of_start = digests.filter(|(name, _)| names.contains(&name.as_str()));
    of_start
        .map(|(name, digest)| (name.clone(), *digest))
        .collect()
}

/// The files and records of `new` that hold at once and are not as in `old`.
pub(super) fn changes(old: &Loaded, new: &Loaded) -> Vec<String> {
    let files = changed_files(&old.digests, &new.digests);
    let at_start = [at_start(old), at_start(new)];
    let waits = |name: &String| at_start.iter().any(|files| files.contains_key(name));
    let records = old.records.differences(&new.records);
    let records = records.filter(|spec| spec.update == Update::Reload);
    files
        .into_iter()
        .filter(|name| !waits(name))
        .chain(records.map(|spec| spec.name.to_owned()))
        .collect()
}

/// Files that are new, gone or different; records.config shows by its records.
pub(super) fn changed_files(old: &Digests, new: &Digests) -> Vec<String> {
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    let changed = new
        .iter()
        .filter(|(name, digest)| old.get(*name) != Some(digest));
    let names = gone.chain(changed.map(|(name, _)| name));
    names
        .filter(|name| *name != RECORDS_NAME)
        .cloned()
        .collect()
}

/// `config status`.
#[derive(Clone, Debug)]
pub struct Status {
    /// The configuration directory.
    pub dir: PathBuf,
    /// The number of the configuration in force.
    pub generation: u64,
    /// When the files were last read with success.
    pub loaded_at: WallTime,
    /// Files and records that wait for a restart.
    pub at_restart: Vec<String>,
    /// Records with a running value.
    pub running: Vec<String>,
    /// Why the last reload was refused, if it was.
    pub last_errors: Vec<ConfigError>,
}
