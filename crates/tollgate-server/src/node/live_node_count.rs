//! Number of live nodes, from their reports.

use std::mem;
use std::time::{Duration, Instant};

/// Live node count for dividing limits in degraded mode. It must not fall too soon, or shares become too large.
#[derive(Debug)]
pub(crate) struct LiveNodeCount {
    /// Time without a report after which a node is gone.
    lifetime: Duration,
    count: u32,
    /// Clean departures that Redis had counted at the last report.
    departures: u64,
    /// Whether Redis has not replied to a report yet.
    is_new: bool,
    /// Whether a report has failed or was omitted since the last one that succeeded.
    is_interrupted: bool,
    /// Until then, the count falls only by clean departures.
    held_until: Option<Instant>,
}

/// The node counts in the reply to a report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeCounts {
    /// Nodes that are up, including this one.
    pub(crate) up: u32,
    /// Nodes that have left cleanly, since Redis counts them.
    pub(crate) departures: u64,
    /// Whether Redis has the previous report of this node, and it is recent by the clock of Redis.
    pub(crate) is_continuous: bool,
}

impl LiveNodeCount {
    /// Creates a count. `initial` counts as known if Redis does not reply to the first report, as after a start
    /// without Redis.
    pub(crate) const fn new(lifetime: Duration, initial: u32) -> Self {
        let (departures, is_interrupted, held_until) = (0, false, None);
        Self { lifetime, count: initial, departures, is_new: true, is_interrupted, held_until }
    }

    /// Notes that Redis was lost, or did not reply to a report.
    pub(crate) const fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Updates the count after a report, and returns it.
    ///
    /// While Redis replies, the nodes that are up count: a crashed node ends after its lifetime, a clean departure
    /// counts at once. After an interruption (an outage, lost data, a clock step) the node list in Redis may be empty
    /// or stale. The count then falls only by clean departures, until Redis has replied for one node lifetime.
    pub(crate) fn update(&mut self, counts: NodeCounts, now: Instant) -> u32 {
        if mem::take(&mut self.is_new) && !self.is_interrupted {
            self.count = counts.up;
        }
        let departures = mem::replace(&mut self.departures, counts.departures);
        if mem::take(&mut self.is_interrupted) || !counts.is_continuous {
            self.held_until = Some(now + self.lifetime);
        } else {
            let departed = counts.departures.saturating_sub(departures);
            let departed = u32::try_from(departed).unwrap_or(u32::MAX);
            self.count = self.count.saturating_sub(departed);
        }
        self.held_until.take_if(|until| now >= *until);
        self.count = if self.held_until.is_some() { self.count.max(counts.up) } else { counts.up };
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(30);

    /// A count with a manual clock in seconds.
    struct Fixture {
        start: Instant,
        live_nodes: LiveNodeCount,
        departures: u64,
    }

    impl Fixture {
        /// Creates a count of three nodes, after one lifetime without an interruption.
        fn of_three() -> Self {
            let (start, live_nodes) = (Instant::now(), LiveNodeCount::new(LIFETIME, 1));
            let mut fixture = Self { start, live_nodes, departures: 7 };
            assert_eq!([fixture.first(3), fixture.report(3, 30)], [3, 3]);
            fixture
        }

        fn update(&mut self, up: u32, seconds: u64, is_continuous: bool) -> u32 {
            let counts = NodeCounts { up, departures: self.departures, is_continuous };
            self.live_nodes.update(counts, self.start + Duration::from_secs(seconds))
        }

        /// The first report, before which Redis does not know this node.
        fn first(&mut self, up: u32) -> u32 {
            self.update(up, 0, false)
        }

        fn report(&mut self, up: u32, seconds: u64) -> u32 {
            self.update(up, seconds, true)
        }
    }

    #[test]
    fn joining_node_counts_at_the_next_report() {
        let mut fixture = Fixture::of_three();
        assert_eq!([fixture.report(4, 31), fixture.report(9, 32)], [4, 9]);
    }

    #[test]
    fn new_node_counts_all_nodes_at_its_first_report() {
        let live_nodes = LiveNodeCount::new(LIFETIME, 5);
        let mut fixture = Fixture { start: Instant::now(), live_nodes, departures: 7 };
        assert_eq!(fixture.first(3), 3);
        fixture.departures += 1;
        assert_eq!(fixture.report(2, 1), 2, "a clean departure");
    }

    #[test]
    fn initial_count_is_kept_for_one_lifetime_after_a_start_without_redis() {
        let live_nodes = LiveNodeCount::new(LIFETIME, 5);
        let mut fixture = Fixture { start: Instant::now(), live_nodes, departures: 7 };
        fixture.live_nodes.interrupt();
        assert_eq!([fixture.first(1), fixture.report(6, 1), fixture.report(2, 29)], [5, 6, 6]);
        assert_eq!(fixture.report(2, 30), 2);
    }

    #[test]
    fn expired_node_and_clean_departure_end_at_once() {
        let mut fixture = Fixture::of_three();
        assert_eq!(fixture.report(2, 31), 2, "Redis has ended the lifetime of a node");
        fixture.departures += 1;
        assert_eq!(fixture.report(1, 32), 1);
    }

    #[test]
    fn count_is_kept_until_redis_has_replied_for_one_lifetime() {
        let mut fixture = Fixture::of_three();
        fixture.live_nodes.interrupt();
        // Ten minutes later this node is the first to report again.
        assert_eq!([600, 601, 629].map(|seconds| fixture.report(2, seconds)), [3, 3, 3]);
        assert_eq!(fixture.report(2, 630), 2, "the third node did not come back");
    }

    #[test]
    fn another_interruption_restarts_the_lifetime() {
        let mut fixture = Fixture::of_three();
        fixture.live_nodes.interrupt();
        assert_eq!([fixture.report(1, 600), fixture.report(2, 629)], [3, 3]);
        fixture.live_nodes.interrupt();
        assert_eq!([630, 659].map(|seconds| fixture.report(2, seconds)), [3, 3]);
        assert_eq!(fixture.report(2, 660), 2);
    }

    /// Redis was emptied, or its clock has stepped, between two reports that both succeed.
    #[test]
    fn lost_node_list_does_not_lower_the_count() {
        let mut fixture = Fixture::of_three();
        fixture.departures = 0;
        assert_eq!(fixture.update(1, 31, false), 3);
        assert_eq!(
            [fixture.report(2, 32), fixture.report(2, 60), fixture.report(2, 61)],
            [3, 3, 2]
        );
    }

    #[test]
    fn clean_departure_after_an_outage_counts_at_once() {
        let mut fixture = Fixture::of_three();
        fixture.live_nodes.interrupt();
        // Departures during the outage are unknown: other nodes may have joined and left.
        fixture.departures += 5;
        assert_eq!(fixture.report(2, 600), 3);
        fixture.departures += 1;
        assert_eq!(fixture.report(1, 601), 2);
        assert_eq!(fixture.report(4, 602), 4, "nodes that join count at once");
        assert_eq!(fixture.report(3, 603), 4);
    }
}
