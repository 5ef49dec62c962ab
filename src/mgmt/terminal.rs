//! What programs print, to readers that may be gone and disks that may be full.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;

/// Writes a line to standard error. Where that can't be written nobody can be
/// told, and the exit code has to do.
pub fn tell(line: impl Display) {
    drop(writeln!(stderr().lock(), "{line}"));
}

/// Writes to standard output, at once.
///
/// # Errors
///
/// The system's reason; a broken pipe if the reader has gone.
pub fn write(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes to standard output; the exit code of a program that has done what it
/// was asked. A reader that leaves early has what it wanted.
#[must_use]
pub fn print(text: &str) -> ExitCode {
    match write(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            tell(format_args!("standard output can't be written: {error}"));
            ExitCode::FAILURE
        }
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}
