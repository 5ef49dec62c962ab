//! Serving, draining, stopped: what every thread and connection watches.

use tokio::sync::watch;

/// Where the server stands between start and end. It only ever moves down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Connections are accepted.
    Serving,
    /// None are accepted, idle ones are closed, requests are finished.
    Draining,
    /// What is left is cut off.
    Stopped,
}

/// The hand that moves the server on.
#[derive(Debug)]
pub struct LifeControl(watch::Sender<Stage>);

/// The eye that watches it.
#[derive(Clone, Debug)]
pub struct Life(watch::Receiver<Stage>);

impl LifeControl {
    /// A server that is serving.
    #[must_use]
    pub fn new() -> (Self, Life) {
        let (sender, receiver) = watch::channel(Stage::Serving);
        (Self(sender), Life(receiver))
    }

    /// Moves on to `stage`; never back.
    pub fn advance(&self, stage: Stage) {
        self.0.send_if_modified(|now| {
            let later = stage > *now;
            *now = (*now).max(stage);
            later
        });
    }
}

impl Life {
    /// Where the server stands.
    #[must_use]
    pub fn stage(&self) -> Stage {
        *self.0.borrow()
    }

    /// Waits until the server stands at `stage` or beyond. Its control gone, it
    /// is stopped.
    pub async fn reaches(&mut self, stage: Stage) {
        // An error says that the control is gone, which ends the wait too.
        drop(self.0.wait_for(|now| *now >= stage).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stages_are_reached_in_order_and_never_left_backwards() {
        let (control, mut life) = LifeControl::new();
        control.advance(Stage::Stopped);
        control.advance(Stage::Draining);
        assert_eq!(life.stage(), Stage::Stopped);
        life.reaches(Stage::Draining).await;
    }

    #[tokio::test]
    async fn a_lost_control_ends_the_wait() {
        let (control, mut life) = LifeControl::new();
        drop(control);
        life.reaches(Stage::Stopped).await;
    }
}
