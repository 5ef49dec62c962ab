//! The configuration directory, read: bytes for the parsers, and a memory of
//! what was in each file.

use crate::config::ConfigError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The most bytes of one file.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A hash of each file that was read, by the name that messages show.
pub type Digests = BTreeMap<String, u64>;

/// Reads files whose paths are relative to the configuration directory.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    digests: RefCell<Digests>,
    /// Texts that are read in place of files, by their names.
    instead: BTreeMap<String, Vec<u8>>,
}

impl Reader {
    /// A reader of that directory.
    #[must_use]
    pub fn of(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            digests: RefCell::default(),
            instead: BTreeMap::new(),
        }
    }

    /// The same, which reads these texts in place of files of their names.
    #[must_use]
    pub fn with(self, instead: BTreeMap<String, Vec<u8>>) -> Self {
        Self { instead, ..self }
    }

    /// The path that a name in the configuration means.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The bytes of a file; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The system's reason, as a finding in that file.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ConfigError> {
        match self.bytes(name) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(name, &error)),
        }
    }

    /// The files that `.include NAME` means: one, or all of a directory by
    /// their names, but for those that begin with a dot.
    ///
    /// # Errors
    ///
    /// Why one of them can't be read, as a clause.
    pub fn include(&self, name: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let names = self.included(name).map_err(|error| error.to_string())?;
        let files = names.into_iter().map(|name| match self.bytes(&name) {
            Ok(bytes) => Ok((name, bytes)),
            Err(error) => Err(format!("{name}: {error}")),
        });
        files.collect()
    }

    /// What was read so far, by name.
    #[must_use]
    pub fn digests(&self) -> Digests {
        self.digests.borrow().clone()
    }

    /// The bytes of a file whose changes no reload tells of; `None` if there
    /// is none that can be read.
    #[must_use]
    pub fn glance(&self, name: &str) -> Option<Vec<u8>> {
        self.bounded(name).ok()
    }

    fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        let bytes = self.bounded(name)?;
        let digest = xxh3_64(&bytes);
        self.digests.borrow_mut().insert(name.to_owned(), digest);
        Ok(bytes)
    }

    fn bounded(&self, name: &str) -> io::Result<Vec<u8>> {
        if let Some(text) = self.instead.get(name) {
            return Ok(text.clone());
        }
        let mut bytes = Vec::new();
        let file = File::open(self.path(name))?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|len| len > FILE_BYTES_MAX) {
            let what = format!("larger than {FILE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        Ok(bytes)
    }

    fn included(&self, name: &str) -> io::Result<Vec<String>> {
        if !self.path(name).is_dir() {
            return Ok(vec![name.to_owned()]);
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.path(name))? {
            let entry = entry?;
            let file = entry.file_name().to_string_lossy().into_owned();
            if !file.starts_with('.') && entry.path().is_file() {
                names.push(format!("{}/{file}", name.trim_end_matches('/')));
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// The finding that a file can't be had, at its first line.
fn unreadable(name: &str, why: &dyn std::fmt::Display) -> ConfigError {
    ConfigError {
        file: name.into(),
        line: 1,
        column: 1,
        token: String::new(),
        what: format!("the file can't be read: {why}"),
        help: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_file_is_none_and_a_directory_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        let reader = Reader::of(dir.path());
        assert_eq!(reader.read("absent").unwrap(), None);
        let error = reader.read("sub").unwrap_err().to_string();
        assert!(error.starts_with("sub:1:1: "), "{error}");
    }

    #[test]
    fn a_directory_is_included_by_name_without_hidden_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("rules")).unwrap();
        for name in ["b", "a", ".swp"] {
            std::fs::write(dir.path().join("rules").join(name), name).unwrap();
        }
        let reader = Reader::of(dir.path());
        let files = reader.include("rules/").unwrap();
        let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["rules/a", "rules/b"]);
        assert!(reader.include("absent").is_err());
    }

    #[test]
    fn digests_tell_which_file_changed() {
        let dir = tempfile::tempdir().unwrap();
        let digest = |text: &str| {
            std::fs::write(dir.path().join("a"), text).unwrap();
            let reader = Reader::of(dir.path());
            reader.read("a").unwrap();
            reader.digests()
        };
        assert_eq!(digest("1"), digest("1"));
        assert_ne!(digest("1"), digest("2"));
    }
}
