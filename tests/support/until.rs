//! Waiting for what happens elsewhere.

use std::time::Duration;

/// Waits for what another thread or process brings about, at most 20 seconds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let came = (0..2000).any(|_| {
        holds() || {
            std::thread::park_timeout(Duration::from_millis(10));
            false
        }
    });
    assert!(came, "{what} never came about");
}
