//! The faults of the campaign, and how many of each were observed.

use std::fmt;
use std::time::{Duration, Instant};

use tollgate_testkit::server::{Cluster, Server};
use tollgate_testkit::wait::eventually;

use super::fleet::Fleet;
use super::traffic;
use crate::fixture::script_calls;

/// The time that a worker is suspended, longer than any hold of the limits.
const SUSPENSION: Duration = Duration::from_millis(400);
/// Cuts of all connections while a worker is suspended.
const CUTS: u32 = 3;

/// The number of observed faults.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FaultCounts {
    killed: u64,
    suspended: u64,
    cut: u64,
    failovers: u64,
    rounds: u64,
}

impl fmt::Display for FaultCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { killed, suspended, cut, failovers, .. } = self;
        write!(
            formatter,
            "faults: {killed} killed, {suspended} suspended, {cut} connections cut, {failovers} failovers"
        )
    }
}

impl FaultCounts {
    pub(super) const fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Injects each fault while the workers take, and waits for its effect. Then there is a time without faults, in which
    /// all leases are drained at once. It also separates the failovers: a replica of Redis 7.0 that is promoted again
    /// within four node timeouts counts the votes of its last election, and both nodes are primaries for a moment.
    pub(super) fn inject(&mut self, fleet: &mut Fleet, cluster: &Cluster) {
        fleet.kill_one();
        self.killed += 1;
        let suspended = fleet.suspend_one();
        for _ in 0..CUTS {
            wait(SUSPENSION / CUTS);
            self.cut += cut_connections(cluster);
        }
        suspended.resume();
        self.suspended += 1;
        fail_over(cluster);
        self.failovers += 1;
        fleet.wait_for_admissions();
        traffic::wait_for_cycle(fleet.hold());
        self.rounds += 1;
    }

    /// Fails if a fault was not observed in every round.
    pub(super) fn assert_all_injected(&self) {
        let each = [self.killed, self.suspended, self.failovers];
        assert!(self.rounds > 0 && each == [self.rounds; 3], "{self}");
        assert!(self.cut >= self.rounds, "no connection was cut: {self}");
    }
}

/// Closes the connections of all workers. Returns their number.
fn cut_connections(cluster: &Cluster) -> u64 {
    let close = |node: &Server, kind: &str| {
        let reply = node.raw().call(&["CLIENT", "KILL", "TYPE", kind]);
        u64::try_from(reply.int()).unwrap()
    };
    let nodes = cluster.nodes().iter();
    nodes.map(|node| close(node, "normal") + close(node, "pubsub")).sum()
}

/// Promotes the replica, and waits until it decides requests.
fn fail_over(cluster: &Cluster) {
    let old = cluster.primary_of_slot(0);
    let replicas = cluster.replicas_of(old);
    let new = *replicas.first().expect("the primary has a replica");
    let calls = script_calls(&mut new.raw());
    cluster.failover(new);
    assert_eq!(cluster.primary_of_slot(0).port(), new.port(), "the replica is the primary");
    eventually("the new primary decides", || script_calls(&mut new.raw()) > calls);
}

/// Lets the workers run for a while: nothing is asserted about what they do meanwhile.
fn wait(length: Duration) {
    let began = Instant::now();
    eventually("the time is over", || began.elapsed() >= length);
}
