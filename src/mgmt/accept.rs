//! Accepting, for the control socket and the admin listener: so many
//! conversations at once, and a pause after what went wrong.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

/// How long nothing is accepted after a failure, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Holds a conversation with each that `accept` brings, `at_once` at the same
/// time; more wait in the listen queue. Runs inside a `LocalSet`, until
/// dropped. `name` is the listener's in the log.
pub(super) async fn serve<S, C>(
    name: &str,
    at_once: usize,
    accept: impl AsyncFn() -> io::Result<S>,
    converse: impl Fn(S) -> C,
) where
    C: Future<Output = ()> + 'static,
{
    let slots = Arc::new(Semaphore::new(at_once));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        match accept().await {
            Ok(stream) => {
                let conversation = converse(stream);
                spawn_local(async move {
                    conversation.await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "{name}: accept failed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
