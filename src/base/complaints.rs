//! What goes wrong often, told no oftener than can be read.

use super::clock::MonoTime;
use std::cell::Cell;
use std::time::Duration;

/// The least time between two complaints.
const APART: Duration = Duration::from_secs(1);

/// Of what goes wrong within a second once is told of, the rest is counted.
#[derive(Debug, Default)]
pub struct Complaints {
    told_at: Cell<Option<MonoTime>>,
    untold: Cell<u64>,
}

impl Complaints {
    /// Takes what went wrong at `now`. Whether it is to be told: then how often
    /// something went wrong since the last time that was.
    pub fn due(&self, now: MonoTime) -> Option<u64> {
        let told_at = self.told_at.get();
        if told_at.is_some_and(|told_at| now.since(told_at) < APART) {
            self.untold.set(self.untold.get() + 1);
            return None;
        }
        self.told_at.set(Some(now));
        Some(self.untold.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_second_is_told_and_the_others_are_counted() {
        let complaints = Complaints::default();
        let at = |millis: u64| complaints.due(MonoTime::from_nanos(millis * 1_000_000));
        let told = [0, 0, 999, 1000, 1999, 5000, 6000].map(at);
        let expected = [Some(0), None, None, Some(2), None, Some(1), Some(0)];
        assert_eq!(told, expected);
    }
}
