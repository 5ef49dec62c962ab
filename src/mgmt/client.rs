//! The other end of the control socket: one call, one answer, for programs.

use super::rpc::{self, Call, Fault, MESSAGE_BYTES_MAX};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
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
        source: std::io::Error,
    },
    /// The connection broke before the answer was whole.
    #[error("the server did not answer: {0}")]
    Broken(#[from] std::io::Error),
    /// The server refused the call.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Makes one call on the socket at `path` and waits for its answer.
///
/// # Errors
///
/// `NoServer` if nobody listens, `Broken` if no whole answer comes within a
/// minute, `Fault` with the server's reason.
pub fn call(path: &Path, call: &Call) -> Result<Value, CallError> {
    let mut stream = UnixStream::connect(path).map_err(|source| CallError::NoServer {
        path: path.to_owned(),
        source,
    })?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let line = call.to_line() + "\n";
    stream.write_all(line.as_bytes())?;
    Ok(rpc::parse_answer(&read_line(stream)?)?)
}

fn read_line(stream: UnixStream) -> std::io::Result<Vec<u8>> {
    let bound = u64::try_from(MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut line = Vec::new();
    BufReader::new(stream.take(bound)).read_until(b'\n', &mut line)?;
    if line.ends_with(b"\n") {
        return Ok(line);
    }
    let what = "the answer ended in the middle";
    Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, what))
}
