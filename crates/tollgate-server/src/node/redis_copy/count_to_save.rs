//! When the number of live nodes is saved.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Decides when a node count is saved: a higher one at once, a lower one when it has lasted for one node lifetime. When
/// a whole fleet stops, its nodes leave one after the other, and the last ones must not save their small counts.
#[derive(Debug)]
pub(super) struct CountToSave {
    saved: Option<NonZeroU32>,
    lower_since: Option<Instant>,
    lifetime: Duration,
}

impl CountToSave {
    pub(super) const fn new(saved: Option<NonZeroU32>, lifetime: Duration) -> Self {
        Self { saved, lower_since: None, lifetime }
    }

    /// Returns the current count if it must be saved now.
    pub(super) fn update(&mut self, count: NonZeroU32, now: Instant) -> Option<NonZeroU32> {
        if self.saved.is_some_and(|saved| count < saved) {
            let since = *self.lower_since.get_or_insert(now);
            if now.duration_since(since) < self.lifetime {
                return None;
            }
        }
        self.lower_since = None;
        (self.saved.replace(count) != Some(count)).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(30);

    fn updates(saved: Option<u32>, reports: &[(u64, u32)]) -> Vec<Option<u32>> {
        let (start, count) = (Instant::now(), |count| NonZeroU32::new(count).unwrap());
        let mut to_save = CountToSave::new(saved.map(count), LIFETIME);
        let mut update = |&(seconds, nodes): &(u64, u32)| {
            to_save.update(count(nodes), start + Duration::from_secs(seconds)).map(NonZeroU32::get)
        };
        reports.iter().map(&mut update).collect()
    }

    #[test]
    fn first_and_higher_counts_are_saved_at_once() {
        assert_eq!(updates(None, &[(0, 1), (1, 1), (2, 3)]), [Some(1), None, Some(3)]);
        assert_eq!(updates(Some(3), &[(0, 3), (1, 4)]), [None, Some(4)]);
    }

    #[test]
    fn lower_count_is_saved_after_one_lifetime() {
        let reports = [(0, 2), (10, 1), (29, 1), (30, 1), (31, 1)];
        assert_eq!(updates(Some(3), &reports), [None, None, None, Some(1), None]);
    }

    #[test]
    fn nodes_that_come_back_restart_the_lifetime() {
        let reports = [(0, 1), (20, 3), (40, 2), (69, 2), (70, 2)];
        assert_eq!(updates(Some(3), &reports), [None, None, None, None, Some(2)]);
    }
}
