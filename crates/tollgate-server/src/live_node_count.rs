//! How many nodes there are, by what their heartbeats say.

use std::time::{Duration, Instant};

/// The nodes of late. Limits are divided among them while the store is lost, so it must not forget too soon.
#[derive(Debug)]
pub(crate) struct LiveNodeCount {
    /// A node that has not been heard of for so long is gone.
    lifetime: Duration,
    most: u32,
    /// When there were last so many, or nobody could look.
    at: Instant,
    counted: Instant,
}

impl LiveNodeCount {
    pub(crate) const fn new(lifetime: Duration, now: Instant) -> Self {
        Self { lifetime, most: 1, at: now, counted: now }
    }

    /// Notes how many are up now, and tells how many to reckon with.
    ///
    /// A store that comes back knows of nobody, or of nobody who could still say that it is up: until all have had
    /// time to, there are as many as there were.
    pub(crate) fn count(&mut self, up: u32, every: Duration, now: Instant) -> u32 {
        let was_away = now.duration_since(self.counted) > every * 2;
        self.counted = now;
        if was_away {
            self.at = now;
        }
        if up >= self.most || now.duration_since(self.at) >= self.lifetime {
            (self.most, self.at) = (up, now);
        }
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);
    const LIFETIME: Duration = Duration::from_secs(30);

    #[test]
    fn who_leaves_counts_until_its_lifetime_is_over() {
        let start = Instant::now();
        let mut live_nodes = LiveNodeCount::new(LIFETIME, start);
        let mut count =
            |up, seconds| live_nodes.count(up, EVERY, start + Duration::from_secs(seconds));
        assert_eq!([count(3, 0), count(2, 10), count(2, 20), count(2, 30)], [3, 3, 3, 2]);
        assert_eq!(count(5, 40), 5);
    }

    #[test]
    fn after_an_outage_however_long_there_are_as_many_as_before() {
        let start = Instant::now();
        let mut live_nodes = LiveNodeCount::new(LIFETIME, start);
        let mut count =
            |up, seconds| live_nodes.count(up, EVERY, start + Duration::from_secs(seconds));
        assert_eq!(count(3, 0), 3);
        // Nobody could look for ten minutes, and now this one is the first to be back.
        assert_eq!([count(1, 600), count(2, 610), count(2, 620)], [3, 3, 3]);
        assert_eq!(count(2, 630), 2, "the third is gone");
    }
}
