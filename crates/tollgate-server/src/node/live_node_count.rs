//! Number of live nodes, from their heartbeats.

use std::time::{Duration, Instant};

/// Live node count for dividing limits in degraded mode. It must not fall too soon, or shares become too large.
#[derive(Debug)]
pub(crate) struct LiveNodeCount {
    /// Time without a heartbeat after which a node is gone.
    lifetime: Duration,
    count: u32,
    /// When `count` was last confirmed, or when an outage ended.
    confirmed: Instant,
    updated: Instant,
}

impl LiveNodeCount {
    pub(crate) const fn new(lifetime: Duration, now: Instant) -> Self {
        Self { lifetime, count: 1, confirmed: now, updated: now }
    }

    /// Updates the count from the nodes that are up, and returns it.
    ///
    /// A higher number counts immediately, a lower one after one node lifetime. After an outage the node list in
    /// Redis is empty or stale, so the last count is kept for one node lifetime.
    pub(crate) fn update(&mut self, up: u32, interval: Duration, now: Instant) -> u32 {
        let was_outage = now.duration_since(self.updated) > interval * 2;
        self.updated = now;
        if was_outage {
            self.confirmed = now;
        }
        if up >= self.count || now.duration_since(self.confirmed) >= self.lifetime {
            (self.count, self.confirmed) = (up, now);
        }
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);
    const LIFETIME: Duration = Duration::from_secs(30);

    #[test]
    fn missing_node_counts_for_one_lifetime() {
        let start = Instant::now();
        let mut live_nodes = LiveNodeCount::new(LIFETIME, start);
        let mut count =
            |up, seconds| live_nodes.update(up, INTERVAL, start + Duration::from_secs(seconds));
        assert_eq!([count(3, 0), count(2, 10), count(2, 20), count(2, 30)], [3, 3, 3, 2]);
        assert_eq!(count(5, 40), 5);
    }

    #[test]
    fn keeps_the_count_for_one_lifetime_after_an_outage() {
        let start = Instant::now();
        let mut live_nodes = LiveNodeCount::new(LIFETIME, start);
        let mut count =
            |up, seconds| live_nodes.update(up, INTERVAL, start + Duration::from_secs(seconds));
        assert_eq!(count(3, 0), 3);
        // An outage of ten minutes; this node is the first to register again.
        assert_eq!([count(1, 600), count(2, 610), count(2, 620)], [3, 3, 3]);
        assert_eq!(count(2, 630), 2, "the third node did not come back");
    }
}
