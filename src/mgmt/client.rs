//! The other end of the control socket: one call, one answer, for programs.

use super::load::STATE_DIR;
use super::paths;
use super::rpc::{self, Call, Fault, MESSAGE_BYTES_MAX};
use super::whereabouts;
use crate::config::records::variable;
use nix::unistd::{Uid, User};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a call may take; a reload of a large table is the slowest.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody answers on the socket.
    #[error("no server answers on {}: {source}; is traffic_server running?", path.display())]
    NoServer {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: Error,
    },
    /// The server of the configuration is elsewhere.
    #[error(
        "no server answers on {}: the server of this configuration was started with another \
         {STATE_DIR}, {}. Take the change back, or run this with {}={} until the server is \
         started again",
        path.display(),
        state_dir.display(),
        variable(STATE_DIR),
        state_dir.display()
    )]
    Elsewhere {
        /// The socket that the records name.
        path: PathBuf,
        /// The state directory of the server.
        state_dir: PathBuf,
    },
    /// The socket is another user's.
    #[error(
        "no rights to the control socket {}: {} belongs to {owner}; \
         run this as that user or as root",
        path.display(),
        place.display()
    )]
    NoRights {
        /// The socket.
        path: PathBuf,
        /// The socket, or the directory that hides it.
        place: PathBuf,
        /// Whose that is.
        owner: String,
    },
    /// The connection broke before the answer was whole.
    #[error("the server did not answer: {0}")]
    Broken(#[from] Error),
    /// The answer came, and standard output can't be written.
    #[error("standard output can't be written: {0}")]
    Output(#[source] Error),
    /// The server refused the call.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Makes one call on the socket at `path` and waits for its answer.
///
/// # Errors
///
/// `NoServer` if nobody listens, `NoRights` if others may, `Broken` if no whole answer comes within a
/// minute, `Fault` with the server's reason.
pub fn call(path: &Path, call: &Call) -> Result<Value, CallError> {
    let mut stream = UnixStream::connect(path).map_err(|source| unreachable(path, source))?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let line = call.to_line() + "\n";
    stream.write_all(line.as_bytes())?;
    Ok(rpc::parse_answer(&read_line(stream)?)?)
}

/// As [`call`], to the server of the configuration in `config_dir`, where this
/// process's environment and its records say that it is.
///
/// # Errors
///
/// Those of [`call`]; `Elsewhere` if the server runs with another state
/// directory.
pub fn call_server(config_dir: &Path, request: &Call) -> Result<Value, CallError> {
    let answer = call(&paths::socket_path(config_dir), request);
    let Err(CallError::NoServer { path, source }) = answer else {
        return answer;
    };
    let found = whereabouts::state_dir_of(config_dir);
    Err(match found.filter(|dir| path.parent() != Some(dir)) {
        Some(state_dir) => CallError::Elsewhere { path, state_dir },
        None => CallError::NoServer { path, source },
    })
}

fn unreachable(path: &Path, source: Error) -> CallError {
    let path = path.to_owned();
    if source.kind() != ErrorKind::PermissionDenied {
        return CallError::NoServer { path, source };
    }
    // A directory that may not be entered hides the socket, and itself is seen.
    let seen = path.ancestors().find_map(|place| {
        let owner = place.metadata().ok()?.uid();
        Some((place.to_owned(), owner_name(owner)))
    });
    match seen {
        Some((place, owner)) => CallError::NoRights { path, place, owner },
        None => CallError::NoServer { path, source },
    }
}

fn owner_name(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => format!("uid {uid} ({})", user.name),
        Ok(None) | Err(_) => format!("uid {uid}"),
    }
}

fn read_line(stream: UnixStream) -> io::Result<Vec<u8>> {
    let bound = u64::try_from(MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut line = Vec::new();
    BufReader::new(stream.take(bound)).read_until(b'\n', &mut line)?;
    if line.ends_with(b"\n") {
        return Ok(line);
    }
    let what = "the answer ended in the middle";
    Err(Error::new(ErrorKind::UnexpectedEof, what))
}
