//! Where the server is between start and stop, and who wants it elsewhere.

use tokio::sync::watch;

/// A stage of the server's life; it only ever moves down this list.
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

    /// Stops accepting; false while it starts or stops.
    pub fn drain(&self) -> bool {
        self.step(Phase::Draining, |now| now == Phase::Running);
        self.phase() == Phase::Draining
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
    fn there_is_no_way_back() {
        let life = Life::default();
        assert!(!life.drain(), "it is still starting");
        life.running();
        assert!(life.drain());
        life.running();
        assert_eq!(life.phase(), Phase::Draining);
        life.stop();
        assert!(!life.drain());
        assert_eq!(life.phase(), Phase::Stopping);
    }
}
