//! What went wrong, told no oftener than can be read.

use std::cell::Cell;
use std::time::Duration;
use strata::base::clock::MonoTime;

/// The least time between two complaints.
const APART: Duration = Duration::from_secs(1);

/// Hundreds of clients fail at once where one does: of those within a second
/// one is told, the others are counted.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    told_at: Cell<Option<MonoTime>>,
    untold: Cell<u64>,
}

impl Complaints {
    /// The line for this error, if one is due now.
    pub(crate) fn line(&self, error: &anyhow::Error, now: MonoTime) -> Option<String> {
        let told_at = self.told_at.get();
        if told_at.is_some_and(|told_at| now.since(told_at) < APART) {
            self.untold.set(self.untold.get() + 1);
            return None;
        }
        self.told_at.set(Some(now));
        Some(match self.untold.take() {
            0 => format!("jtest: {error:#}"),
            untold => format!("jtest: {error:#} (errors since the last line: {untold} more)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn one_error_a_second_is_told_and_the_others_are_counted() {
        let complaints = Complaints::default();
        let at = |millis: u64| {
            let now = MonoTime::from_nanos(millis * 1_000_000);
            complaints.line(&anyhow!("no proxy"), now)
        };
        assert_eq!(at(0).as_deref(), Some("jtest: no proxy"));
        assert_eq!(at(0), None);
        assert_eq!(at(999), None);
        let third = "jtest: no proxy (errors since the last line: 2 more)";
        assert_eq!(at(1000).as_deref(), Some(third));
        assert_eq!(at(1999), None);
        let later = "jtest: no proxy (errors since the last line: 1 more)";
        assert_eq!(at(5000).as_deref(), Some(later));
        assert_eq!(at(6000).as_deref(), Some("jtest: no proxy"));
    }
}
