//! Bounds on waits, at the cost of one timer a connection.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer for one wait after another.
///
/// What is ready at once reads no clock. A wait that ends in time leaves the
/// timer where it stands, so that the next one need not move it: it is moved
/// when it goes off early, or has to go off earlier.
#[derive(Debug, Default)]
pub(super) struct Patience {
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// Waits for `future`, at most `limit`; `None` when that is over.
    ///
    /// Cancel-safe if `future` is. It is moved: give a large one pinned.
    pub(super) async fn wait<F: Future>(
        &mut self,
        limit: Duration,
        future: F,
    ) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut deadline = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            let end = *deadline.get_or_insert_with(|| end_of(limit));
            self.poll_over(end, context).map(|()| None)
        })
        .await
    }

    fn poll_over(&mut self, end: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if timer.deadline() > end {
            timer.as_mut().reset(end);
        }
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= end {
                self.timer = None;
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
        Poll::Pending
    }
}

/// A limit beyond what the clock can say is as good as a year.
fn end_of(limit: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 86_400);
    let now = Instant::now();
    now.checked_add(limit).unwrap_or(now + YEAR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    const SECOND: Duration = Duration::from_secs(1);

    async fn overdue_after(patience: &mut Patience, limit: Duration) -> Duration {
        let begun = Instant::now();
        assert_eq!(patience.wait(limit, pending::<()>()).await, None);
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_needs_no_timer() {
        let mut patience = Patience::default();
        assert_eq!(patience.wait(Duration::ZERO, ready(7)).await, Some(7));
        assert!(patience.timer.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_its_own_limit_whatever_the_last_one_was() {
        let mut patience = Patience::default();
        for limit in [5, 2, 9, 9, 1].map(|seconds| SECOND * seconds) {
            let short = tokio::time::sleep(limit - SECOND / 2);
            assert_eq!(patience.wait(limit, short).await, Some(()));
            let took = overdue_after(&mut patience, limit).await;
            assert!(took >= limit && took < limit + SECOND / 100, "{took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_left_by_a_shorter_wait_does_not_end_a_longer_one() {
        let mut patience = Patience::default();
        let soon = tokio::time::sleep(SECOND / 2);
        assert_eq!(patience.wait(SECOND, soon).await, Some(()));
        let later = tokio::time::sleep(SECOND * 3);
        assert_eq!(patience.wait(SECOND * 4, later).await, Some(()));
    }
}
