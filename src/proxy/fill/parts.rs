//! Which fragments of objects in part are being fetched, so that each is fetched
//! once however many requests wait for it.

use super::Failure;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::watch;

/// What has become of a fragment; nothing yet, while it comes.
type Arrival = Option<Result<Bytes, PartFailure>>;

/// Why a fragment does not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartFailure {
    /// The origin has another representation by now, or gives no such part of
    /// this one: what is held in part is of no use.
    Changed,
    /// The origin gave no answer.
    Origin(Failure),
}

/// Names a fragment: the object's version, and the number.
type Name = (u128, u64);

/// The fragments that are coming. Each has a fetch whose task holds a [`Stretch`].
#[derive(Debug, Default)]
pub struct PartTable {
    coming: Mutex<HashMap<Name, watch::Receiver<Arrival>>>,
}

/// What a request does that misses a fragment.
#[derive(Debug)]
pub enum PartClaim {
    /// It reads it: it has come meanwhile.
    There,
    /// It waits: another request fetches it.
    Wait(PartWait),
    /// It fetches these, of which it waits for the first.
    Fetch(Stretch, PartWait),
}

impl PartTable {
    /// Claims the first of `indices` of the object, and those behind it, up to
    /// one that is coming or there.
    #[must_use]
    pub fn claim(
        self: &Arc<Self>,
        id: u128,
        indices: Range<u64>,
        is_there: impl Fn(u64) -> bool,
    ) -> PartClaim {
        let mut coming = self.coming.lock();
        if let Some(arrival) = coming.get(&(id, indices.start)) {
            return PartClaim::Wait(PartWait(arrival.clone()));
        }
        // Seen under the lock: what has come was stored before it left the table.
        if is_there(indices.start) {
            return PartClaim::There;
        }
        let (sender, first) = watch::channel(None);
        coming.insert((id, indices.start), first.clone());
        let mut left = VecDeque::from([sender]);
        for index in indices.start + 1..indices.end {
            if coming.contains_key(&(id, index)) || is_there(index) {
                break;
            }
            let (sender, arrival) = watch::channel(None);
            coming.insert((id, index), arrival);
            left.push_back(sender);
        }
        drop(coming);
        let stretch = Stretch {
            table: Arc::clone(self),
            id,
            next: indices.start,
            left,
        };
        PartClaim::Fetch(stretch, PartWait(first))
    }

    /// Fragments that are coming.
    #[must_use]
    pub fn len(&self) -> usize {
        self.coming.lock().len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Fragments in a row, to be fetched in order. Dropped, it lets those who wait
/// for what is left fetch for themselves.
#[derive(Debug)]
pub struct Stretch {
    table: Arc<PartTable>,
    id: u128,
    /// The number of the first that is left.
    next: u64,
    left: VecDeque<watch::Sender<Arrival>>,
}

impl Stretch {
    /// The numbers of those that are left.
    #[must_use]
    pub fn indices(&self) -> Range<u64> {
        let count = u64::try_from(self.left.len()).unwrap_or(u64::MAX);
        self.next..self.next.saturating_add(count)
    }

    /// The next one has come.
    pub fn deliver(&mut self, bytes: Bytes) {
        self.end_next(Some(Ok(bytes)));
    }

    /// None of those that are left comes.
    pub fn fail(mut self, failure: &PartFailure) {
        while !self.left.is_empty() {
            self.end_next(Some(Err(failure.clone())));
        }
    }

    fn end_next(&mut self, arrival: Arrival) {
        let Some(sender) = self.left.pop_front() else {
            return;
        };
        // Off the table first: who comes later finds it in the cache.
        self.table.coming.lock().remove(&(self.id, self.next));
        self.next += 1;
        sender.send_replace(arrival);
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        while !self.left.is_empty() {
            self.end_next(None);
        }
    }
}

/// Waits for one fragment.
#[derive(Debug)]
pub struct PartWait(watch::Receiver<Arrival>);

impl PartWait {
    /// The fragment when it has come; `None` when nobody fetches it any more.
    ///
    /// # Errors
    /// Why it does not come.
    pub async fn arrival(mut self) -> Result<Option<Bytes>, PartFailure> {
        match self.0.wait_for(Option::is_some).await {
            Ok(arrival) => arrival.clone().transpose(),
            Err(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: fn(u64) -> bool = |_| false;

    fn fetch(table: &Arc<PartTable>, indices: Range<u64>) -> (Stretch, PartWait) {
        match table.claim(7, indices, NONE) {
            PartClaim::Fetch(stretch, wait) => (stretch, wait),
            PartClaim::Wait(_) | PartClaim::There => panic!("somebody fetches it"),
        }
    }

    fn wait(table: &Arc<PartTable>, index: u64) -> PartWait {
        match table.claim(7, index..index + 1, NONE) {
            PartClaim::Wait(wait) => wait,
            PartClaim::Fetch(..) | PartClaim::There => panic!("nobody fetches it"),
        }
    }

    #[tokio::test]
    async fn each_fragment_is_fetched_once_and_given_to_all_who_wait() {
        let table = Arc::new(PartTable::default());
        let (mut stretch, own) = fetch(&table, 3..6);
        assert_eq!((stretch.indices(), table.len()), (3..6, 3));
        let others = [wait(&table, 3), wait(&table, 4)];
        stretch.deliver(Bytes::from_static(b"three"));
        stretch.deliver(Bytes::from_static(b"four"));
        assert_eq!(own.arrival().await.unwrap().unwrap(), "three");
        let [third, fourth] = others;
        assert_eq!(third.arrival().await.unwrap().unwrap(), "three");
        assert_eq!(fourth.arrival().await.unwrap().unwrap(), "four");
        assert_eq!((stretch.indices(), table.len()), (5..6, 1));
        drop(stretch);
        assert!(table.is_empty());
    }

    #[tokio::test]
    async fn a_stretch_ends_before_what_is_coming_or_there() {
        let table = Arc::new(PartTable::default());
        let (late, _) = fetch(&table, 5..6);
        assert_eq!(fetch(&table, 2..9).0.indices(), 2..5);
        drop(late);
        let PartClaim::Fetch(stretch, _) = table.claim(7, 2..9, |index| index == 4) else {
            panic!("nobody fetches it");
        };
        assert_eq!(stretch.indices(), 2..4);
        let other = table.claim(8, 2..3, NONE);
        assert!(matches!(other, PartClaim::Fetch(..)), "another object's");
        let there = table.claim(7, 9..12, |index| index == 9);
        assert!(matches!(there, PartClaim::There));
    }

    #[tokio::test]
    async fn a_failure_is_told_to_all_and_an_abandoned_stretch_leaves_it_to_them() {
        let table = Arc::new(PartTable::default());
        let (stretch, own) = fetch(&table, 0..2);
        let other = wait(&table, 1);
        stretch.fail(&PartFailure::Changed);
        assert_eq!(own.arrival().await, Err(PartFailure::Changed));
        assert_eq!(other.arrival().await, Err(PartFailure::Changed));
        let (stretch, own) = fetch(&table, 0..2);
        let other = wait(&table, 1);
        drop(stretch);
        assert_eq!(own.arrival().await, Ok(None));
        assert_eq!(other.arrival().await, Ok(None));
        assert!(table.is_empty());
    }
}
