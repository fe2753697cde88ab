//! The nodes and the server of a soak: a node with the memory store, and two nodes on one Redis.

use std::path::PathBuf;

use tollgate_testkit::server::Server;

use crate::fleet::Fleet;
use crate::node::Node;
use crate::redis;
use crate::stage::Stage;

/// Nodes on Redis.
pub(super) const REDIS_NODES: usize = 2;

/// The limit of each counted client: a burst, and requests per second.
pub(super) const BURST: u64 = 100;
pub(super) const RATE: u64 = 20;

/// The version of the policy with which the nodes start.
pub(super) const FIRST_POLICY: u64 = 1;

/// All nodes and servers of a soak.
pub(super) struct System {
    pub(super) redis: Server,
    pub(super) memory: Node,
    pub(super) fleet: Fleet,
    /// The policy file of all nodes.
    pub(super) policy: PathBuf,
}

impl System {
    pub(super) fn start(stage: &Stage) -> Self {
        let policy = stage.scratch().write("policy.yaml", policy(FIRST_POLICY));
        let node = || stage.node().policy_file(&policy).with("max-keys", "20000");
        let redis = redis::start();
        let memory = node().with("data-dir", stage.scratch().path().join("memory")).start();
        let fleet = node().redis(&redis::url(&redis)).with("redis-timeout-ms", "1000");
        let fleet = fleet.start_fleet(REDIS_NODES);
        fleet.wait_until_counted();
        Self { redis, memory, fleet, policy }
    }

    /// All nodes: the one with the memory store first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        std::iter::once(&self.memory).chain(self.fleet.iter())
    }
}

/// The policy of a version. A version changes the limit of a rule that no counted client matches.
pub(super) fn policy(version: u64) -> String {
    let changing = 1000 + version % 7;
    format!(
        "version: 1
rules:
  - name: counted
    match: {{ path: /counted }}
    per: [client]
    limits: [{{ rate: {RATE}/s, burst: {BURST}, algorithm: token_bucket }}]
  - name: changing
    match: {{ path: /changing }}
    per: [client]
    limits: [{{ rate: {changing}/min, algorithm: sliding_window }}]
  - name: churn
    per: [client]
    limits: [{{ rate: 100/5s, algorithm: sliding_counter }}, {{ rate: 1000/10s, algorithm: fixed_window }}]
"
    )
}
