//! The other end of the control socket: one call, one answer, for programs.

use super::rpc::{self, Call, Fault, MESSAGE_BYTES_MAX};
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
