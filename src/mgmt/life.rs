//! Where the server is between start and stop, and who wants it elsewhere.

use tokio::sync::watch;

/// A stage of the server's life; it only ever moves down this list, but for
/// `Draining`, which may go back to `Running`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not every port is bound, or not every stripe judged.
    Starting,
    /// Serving.
    Running,
    /// Serving what is begun, accepting nothing: `server drain`.
    Draining,
    /// On the way out.
    Stopping,
}

impl Phase {
    /// The word of `server status` and `/readyz`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Stopping => "stopping",
        }
    }
}

/// Shared by all who ask for a phase or wait for one.
#[derive(Debug)]
pub struct Life {
    phase: watch::Sender<Phase>,
}

impl Default for Life {
    fn default() -> Self {
        let (phase, _) = watch::channel(Phase::Starting);
        Self { phase }
    }
}

impl Life {
    /// The phase now.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Told of every change from now on.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Moves from `Starting` to `Running`; later phases stay.
    pub fn running(&self) {
        self.step(Phase::Running, |now| now == Phase::Starting);
    }

    /// Stops accepting, or accepts again; false once it is stopping.
    pub fn drain(&self, on: bool) -> bool {
        let to = if on { Phase::Draining } else { Phase::Running };
        self.step(to, |now| matches!(now, Phase::Running | Phase::Draining));
        self.phase() == to
    }

    /// Asks the server to stop; there is no way back.
    pub fn stop(&self) {
        self.step(Phase::Stopping, |now| now != Phase::Stopping);
    }

    fn step(&self, to: Phase, from: impl Fn(Phase) -> bool) {
        self.phase.send_if_modified(|phase| {
            let moves = from(*phase) && *phase != to;
            if moves {
                *phase = to;
            }
            moves
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drained_server_can_come_back_but_a_stopping_one_cannot() {
        let life = Life::default();
        assert!(!life.drain(true), "it is still starting");
        life.running();
        assert!(life.drain(true));
        assert!(life.drain(false));
        life.stop();
        assert!(!life.drain(false));
        life.running();
        assert_eq!(life.phase(), Phase::Stopping);
    }
}
