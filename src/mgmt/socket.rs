//! The control socket: who may connect, and how lines become answers.

use super::accept;
use super::rpc::{self, Call, Fault, FaultKind, MESSAGE_BYTES_MAX, Message};
use serde_json::Value;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// Connections served at once; more wait in the listen queue.
const CONNECTIONS_MAX: usize = 32;

/// How long a connection may be silent, or slow to take its answer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The socket's name in the state directory.
pub const SOCKET_NAME: &str = "control.sock";

/// The name that it is bound under, by which the system lists it.
pub const BOUND_NAME: &str = "control.new";

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {}: {source}", path.display())]
pub struct SocketError {
    path: PathBuf,
    source: io::Error,
}

/// Who carries out the calls.
pub trait Handler {
    /// Carries out one call.
    ///
    /// # Errors
    ///
    /// The fault to answer with.
    fn call(&self, call: &Call) -> impl Future<Output = Result<Value, Fault>>;
}

/// Binds the socket in the state directory, which the caller has locked, so
/// that one found there is a dead server's. Only the owner may connect: it is
/// bound under another name and moved when its mode is right.
///
/// # Errors
///
/// The system's reason, such as a path longer than a socket's may be.
pub fn bind(state_dir: &Path) -> Result<StdListener, SocketError> {
    let path = state_dir.join(SOCKET_NAME);
    bind_private(state_dir, &path).map_err(|source| SocketError { path, source })
}

fn bind_private(state_dir: &Path, path: &Path) -> io::Result<StdListener> {
    let fresh = state_dir.join(BOUND_NAME);
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = StdListener::bind(&fresh)?;
    listener.set_nonblocking(true)?;
    std::fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
    std::fs::rename(&fresh, path)?;
    Ok(listener)
}

/// Serves the socket until dropped; runs inside a `LocalSet`.
pub async fn serve<H: Handler + 'static>(listener: UnixListener, handler: Rc<H>) {
    let accept = async || Ok(listener.accept().await?.0);
    let converse = |stream| converse(stream, Rc::clone(&handler));
    accept::serve("control socket", CONNECTIONS_MAX, accept, converse).await;
}

/// Answers line after line until the client leaves, idles or misbehaves.
async fn converse<H: Handler>(stream: UnixStream, handler: Rc<H>) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        match timeout(IDLE_TIMEOUT, read_line(&mut reader, &mut line)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false) | Err(_)) | Err(_) => return,
        }
        let Some(answer) = answer_line(&line, &*handler).await else {
            continue;
        };
        if !send(&mut writer, &answer).await || !line.ends_with(b"\n") {
            return;
        }
    }
}

/// Reads up to a line's end or the bound; false at the end of the stream.
async fn read_line(reader: &mut BufReader<OwnedReadHalf>, line: &mut Vec<u8>) -> io::Result<bool> {
    let bound = u64::try_from(MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
    let read = reader.take(bound).read_until(b'\n', line).await?;
    Ok(read > 0)
}

async fn answer_line<H: Handler>(line: &[u8], handler: &H) -> Option<Value> {
    if line.len() >= MESSAGE_BYTES_MAX {
        let what = format!("a message has at most {MESSAGE_BYTES_MAX} bytes");
        let fault = Fault::new(FaultKind::Request, what);
        return Some(rpc::answer(&Value::Null, Err(fault)));
    }
    match Message::parse(line) {
        Message::One(call) => answer_call(call, handler).await,
        Message::Batch(calls) => {
            let mut answers = Vec::new();
            for call in calls {
                answers.extend(answer_call(call, handler).await);
            }
            (!answers.is_empty()).then_some(Value::Array(answers))
        }
    }
}

async fn answer_call<H: Handler>(call: Result<Call, Fault>, handler: &H) -> Option<Value> {
    match call {
        Err(fault) => Some(rpc::answer(&Value::Null, Err(fault))),
        Ok(call) => {
            let outcome = handler.call(&call).await;
            call.id.map(|id| rpc::answer(&id, outcome))
        }
    }
}

async fn send(writer: &mut OwnedWriteHalf, answer: &Value) -> bool {
    let mut line = answer.to_string();
    line.push('\n');
    let sent = timeout(IDLE_TIMEOUT, writer.write_all(line.as_bytes())).await;
    matches!(sent, Ok(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mgmt::client::{self, CallError};
    use serde_json::json;
    use std::io::{Read, Write};

    struct Echo;

    impl Handler for Echo {
        async fn call(&self, call: &Call) -> Result<Value, Fault> {
            match call.method.as_str() {
                "echo" => Ok(call.params.clone().into()),
                _ => Err(Fault::new(FaultKind::Method, "no such method")),
            }
        }
    }

    /// Runs `client` on a thread of its own against a served socket.
    fn with_server<T: Send + 'static>(client: impl FnOnce(PathBuf) -> T + Send + 'static) -> T {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let listener = UnixListener::from_std(bind(dir.path()).unwrap()).unwrap();
            let serving = tokio::task::spawn_local(serve(listener, Rc::new(Echo)));
            let path = dir.path().join(SOCKET_NAME);
            let answered = tokio::task::spawn_blocking(move || client(path)).await;
            serving.abort();
            answered.unwrap()
        })
    }

    fn raw(path: &Path, text: &[u8]) -> String {
        let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
        stream.write_all(text).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_call_is_answered_and_a_fault_comes_back_as_one() {
        let (good, bad) = with_server(|path| {
            let good = client::call(&path, &Call::new("echo", json!({"a": 1}))).unwrap();
            (good, client::call(&path, &Call::new("nope", json!({}))))
        });
        assert_eq!(good, json!({"a": 1}));
        let Err(CallError::Fault(fault)) = bad else {
            panic!("{bad:?}");
        };
        assert_eq!(fault.code, FaultKind::Method.code());
    }

    #[test]
    fn a_batch_is_answered_by_an_array_without_the_notifications() {
        let text =
            br#"[{"jsonrpc":"2.0","id":1,"method":"echo"},{"jsonrpc":"2.0","method":"echo"},7]
"#;
        let answer = with_server(|path| raw(&path, text));
        let answers: Vec<Value> = serde_json::from_str(&answer).unwrap();
        assert_eq!(answers.len(), 2, "{answer}");
        assert_eq!(answers[1]["error"]["code"], -32600);
    }

    #[test]
    fn a_message_above_the_bound_is_refused_and_the_connection_closed() {
        let text = vec![b' '; MESSAGE_BYTES_MAX + 10];
        let answer = with_server(move |path| {
            let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
            // The server stops reading at the bound, so the end may not fit.
            drop(stream.write_all(&text));
            let mut answer = String::new();
            drop(stream.read_to_string(&mut answer));
            answer
        });
        assert!(answer.contains("-32600"), "{answer}");
    }

    #[test]
    fn only_the_owner_may_connect_and_a_dead_server_s_socket_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        drop(bind(dir.path()).unwrap());
        let _second = bind(dir.path()).unwrap();
        let meta = std::fs::metadata(dir.path().join(SOCKET_NAME)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn without_a_server_the_error_names_the_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SOCKET_NAME);
        let error = client::call(&path, &Call::new("echo", json!({}))).unwrap_err();
        assert!(error.to_string().contains("control.sock"), "{error}");
    }
}
