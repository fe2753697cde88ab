//! Admissions of clients whose limits are checked, by segment: the time between two faults, or of one.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::system::{BURST, RATE, REDIS_NODES};

/// The store that counts a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Store {
    Memory,
    Redis,
}

/// Admissions by segment, store and client.
pub(super) type Admissions = BTreeMap<(usize, Store, u64), u64>;

/// The current segment, and when each began. Segments with odd numbers are outages of Redis.
#[derive(Debug)]
pub(super) struct Segments {
    current: AtomicUsize,
    /// The last segment with an admission on a node with Redis.
    last_admitted: AtomicUsize,
    begins: Mutex<Vec<Instant>>,
}

impl Segments {
    pub(super) fn new() -> Self {
        Self {
            current: AtomicUsize::new(0),
            last_admitted: AtomicUsize::new(0),
            begins: Mutex::new(vec![Instant::now()]),
        }
    }

    /// The number of the current segment.
    pub(super) fn current(&self) -> usize {
        self.current.load(Ordering::SeqCst)
    }

    /// Begins the next segment.
    pub(super) fn next(&self) {
        self.begins.lock().expect("not poisoned").push(Instant::now());
        self.current.fetch_add(1, Ordering::SeqCst);
    }

    /// Records that a node with Redis admitted a counted client.
    pub(super) fn record_admission(&self, segment: usize) {
        self.last_admitted.fetch_max(segment, Ordering::SeqCst);
    }

    /// Returns whether a node with Redis admitted a counted client in the current segment. Not for the first segment.
    pub(super) fn has_admission(&self) -> bool {
        self.last_admitted.load(Ordering::SeqCst) == self.current()
    }

    /// The length of each segment. The last one ends now.
    pub(super) fn lengths(&self) -> Vec<Duration> {
        let begins = self.begins.lock().expect("not poisoned");
        let ends = begins.iter().skip(1).copied().chain([Instant::now()]);
        begins.iter().zip(ends).map(|(begin, end)| end - *begin).collect()
    }
}

/// The highest admission of a client in a segment, relative to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Highest {
    /// The number of admitted requests.
    pub(super) admitted: u64,
    /// The bound of that segment.
    pub(super) bound: u64,
    /// The number of clients and segments above their bounds.
    pub(super) exceeded: usize,
}

/// Compares all admissions of a store with their bounds. The memory store has one segment for the whole time.
pub(super) fn highest(admissions: &Admissions, of: Store, lengths: &[Duration]) -> Highest {
    let mut highest = Highest { admitted: 0, bound: 1, exceeded: 0 };
    for ((segment, _, _), admitted) in admissions.iter().filter(|((_, store, _), _)| *store == of) {
        let bound = match of {
            Store::Memory => bound(BURST, RATE, lengths.iter().sum()),
            Store::Redis => {
                redis_bound(*segment, lengths.get(*segment).copied().unwrap_or_default())
            }
        };
        highest.exceeded += usize::from(*admitted > bound);
        if u128::from(*admitted) * u128::from(highest.bound)
            > u128::from(highest.admitted) * u128::from(bound)
        {
            (highest.admitted, highest.bound) = (*admitted, bound);
        }
    }
    highest
}

/// The number of admissions during outages of Redis.
pub(super) fn outage_admissions(admissions: &Admissions) -> u64 {
    let in_outages = admissions
        .iter()
        .filter(|((segment, store, _), _)| *store == Store::Redis && !segment.is_multiple_of(2));
    in_outages.map(|(_, count)| count).sum()
}

/// The bound of a segment. In an outage, each node admits its share of the limit, rounded up, and Redis, which lost its
/// counters, admits the limit once more on the nodes that reach it.
fn redis_bound(segment: usize, length: Duration) -> u64 {
    if segment.is_multiple_of(2) {
        bound(BURST, RATE, length)
    } else {
        bound(2 * BURST + REDIS_NODES as u64, 2 * RATE, length)
    }
}

fn bound(burst: u64, rate: u64, length: Duration) -> u64 {
    let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
    burst + rate.saturating_mul(micros) / 1_000_000 + 1
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Admissions, Highest, Store, highest, outage_admissions};

    #[test]
    fn each_segment_of_redis_has_its_own_bound() {
        let second = Duration::from_secs(1);
        let lengths = [second, second, 2 * second];
        let admissions: Admissions =
            [((0, Store::Redis, 7), 121), ((1, Store::Redis, 7), 243), ((2, Store::Redis, 7), 142)]
                .into();
        let expected = Highest { admitted: 142, bound: 141, exceeded: 1 };
        assert_eq!(highest(&admissions, Store::Redis, &lengths), expected);
        assert_eq!(highest(&admissions, Store::Memory, &lengths).exceeded, 0);
        assert_eq!(outage_admissions(&admissions), 243);
    }

    #[test]
    fn memory_has_one_bound_for_the_whole_time() {
        let lengths = [Duration::from_secs(1), Duration::from_secs(4)];
        let highest = |count| {
            let admissions = [((0, Store::Memory, 1), count)].into();
            highest(&admissions, Store::Memory, &lengths).exceeded
        };
        assert_eq!((highest(201), highest(202)), (0, 1));
    }
}
