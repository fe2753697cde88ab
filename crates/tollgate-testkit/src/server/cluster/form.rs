//! Servers become a cluster.

use super::Cluster;
use super::slot::SLOTS;
use super::view::seen_by;
use crate::server::{Flavor, Server};
use crate::wait::eventually;

/// Milliseconds without an answer after which a node is taken for dead.
const NODE_TIMEOUT: &str = "1500";

impl Cluster {
    /// Nodes that have met and know their roles, but may not have heard of those of others.
    pub(super) fn form(flavor: Flavor, primaries: u16, replicas_each: u16) -> Self {
        assert!(primaries > 0, "a cluster has a primary");
        let count = primaries * (1 + replicas_each);
        let nodes = (0..count).map(|_| started(flavor)).collect::<Vec<_>>();
        let ids = nodes.iter().map(|node| ok(node, &["CLUSTER", "MYID"])).collect();
        let cluster = Self { nodes, ids };
        cluster.share_slots(primaries);
        cluster.meet();
        let (first, replicas) = cluster.nodes.split_at(usize::from(primaries));
        for (place, replica) in replicas.iter().enumerate() {
            let id = cluster.id(&first[place % first.len()]);
            ok(replica, &["CLUSTER", "REPLICATE", id]);
        }
        cluster
    }

    /// Equal shares, in order, before anybody has met.
    fn share_slots(&self, primaries: u16) {
        let begin = |place: u16| {
            let slot = u32::from(SLOTS) * u32::from(place) / u32::from(primaries);
            u16::try_from(slot).expect("slots are below 16384")
        };
        for (place, node) in (0..).zip(&self.nodes) {
            // So that no two have the same, which they would have to settle first.
            ok(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
            if place < primaries {
                let (first, last) = (begin(place).to_string(), (begin(place + 1) - 1).to_string());
                ok(node, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
        }
    }

    /// Everybody meets everybody, which is quicker than word of mouth.
    fn meet(&self) {
        for (place, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[place + 1..] {
                ok(node, &["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string()]);
            }
        }
        let knows_all = |node: &Server| {
            let members = seen_by(node).unwrap_or_default();
            members.len() == self.nodes.len()
                && members.iter().all(|member| !member.is("handshake"))
        };
        eventually("all nodes have met", || self.nodes.iter().all(knows_all));
    }
}

fn started(flavor: Flavor) -> Server {
    let settings = [
        ("--cluster-enabled", "yes"),
        ("--cluster-config-file", "nodes.conf"),
        ("--cluster-node-timeout", NODE_TIMEOUT),
        // However long ago it has heard from its primary: a slow machine is no reason to stay headless.
        ("--cluster-replica-validity-factor", "0"),
        // Replicas stay where the test has them, also when their primary gives all slots away.
        ("--cluster-allow-replica-migration", "no"),
        ("--repl-diskless-sync-delay", "0"),
    ];
    let words = settings.into_iter().flat_map(|(name, value)| [name, value]);
    Server::builder(flavor).args(words).start()
}

/// What a node answers to what it must not refuse.
pub(super) fn ok(node: &Server, command: &[&str]) -> String {
    let answer = node.raw().call(command);
    assert!(
        !answer.is_error(),
        "{} refuses {}: {}",
        node.port(),
        command.join(" "),
        answer.error()
    );
    answer.text().to_owned()
}
