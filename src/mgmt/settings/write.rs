//! Values put into records.config.

use crate::config::records::{RecordSpec, set_in_text};
use crate::mgmt::persist;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Why records.config was not rewritten; it is as it was.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There is none.
    #[error("there is no {} to write it into: make one, which may be empty", .0.display())]
    NoFile(PathBuf),
    /// It is not all text.
    #[error(
        "{}:{line}: this line is not UTF-8, and can't be kept as it is: \
         convert the file to UTF-8",
        path.display()
    )]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first such line, from 1.
        line: usize,
    },
    /// The system refused.
    #[error("{} can't be rewritten: {source}{}", path.display(), cure(source))]
    System {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: Error,
    },
}

fn cure(reason: &Error) -> &'static str {
    if reason.kind() == ErrorKind::PermissionDenied {
        "; the server's user must be able to write the file and its directory"
    } else {
        ""
    }
}

/// Writes the values into the file at `path`, and keeps all else that is there.
///
/// # Errors
///
/// The file is as it was.
pub(super) fn write(
    path: &Path,
    values: &[(&'static RecordSpec, String)],
) -> Result<(), WriteError> {
    let failed = |source: Error| {
        let path = path.to_owned();
        if source.kind() == ErrorKind::NotFound {
            WriteError::NoFile(path)
        } else {
            WriteError::System { path, source }
        }
    };
    let text = text(path, std::fs::read(path).map_err(failed)?)?;
    let text = values.iter().fold(text, |text, (spec, value)| {
        set_in_text(&text, spec.name, spec.kind, value)
    });
    persist::replace(path, text.as_bytes()).map_err(failed)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, WriteError> {
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..good).unwrap_or_default();
        WriteError::NotUtf8 {
            path: path.to_owned(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        }
    })
}
