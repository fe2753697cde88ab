//! Forming a cluster of servers.

use super::Cluster;
use super::slot::SLOTS;
use super::view::members_of;
use crate::server::{Flavor, Server};
use crate::wait::eventually;

/// The time without a reply after which a node is considered down, in milliseconds.
const NODE_TIMEOUT: &str = "1500";

impl Cluster {
    /// Forms a cluster: all nodes have met and know their own roles, but maybe not those of others.
    pub(super) fn form(flavor: Flavor, primaries: u16, replicas_each: u16) -> Self {
        assert!(primaries > 0, "a cluster has a primary");
        let count = primaries * (1 + replicas_each);
        let nodes = (0..count).map(|_| start_node(flavor)).collect::<Vec<_>>();
        let ids = nodes.iter().map(|node| ok(node, &["CLUSTER", "MYID"])).collect();
        let cluster = Self { nodes, ids };
        cluster.assign_slots(primaries);
        cluster.meet();
        let (first, replicas) = cluster.nodes.split_at(usize::from(primaries));
        for (index, replica) in replicas.iter().enumerate() {
            let id = cluster.id(&first[index % first.len()]);
            ok(replica, &["CLUSTER", "REPLICATE", id]);
        }
        cluster
    }

    /// Assigns equal slot ranges, in order, before the nodes meet.
    fn assign_slots(&self, primaries: u16) {
        let begin = |index: u16| {
            let slot = u32::from(SLOTS) * u32::from(index) / u32::from(primaries);
            u16::try_from(slot).expect("slots are below 16384")
        };
        for (index, node) in (0..).zip(&self.nodes) {
            // Different epochs, because nodes with equal ones must resolve the conflict first.
            ok(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            if index < primaries {
                let (first, last) = (begin(index).to_string(), (begin(index + 1) - 1).to_string());
                ok(node, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
        }
    }

    /// Introduces all nodes to each other, which is faster than gossip.
    fn meet(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[index + 1..] {
                ok(node, &["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string()]);
            }
        }
        let knows_all = |node: &Server| {
            let members = members_of(node).unwrap_or_default();
            members.len() == self.nodes.len()
                && members.iter().all(|member| !member.is("handshake"))
        };
        eventually("all nodes have met", || self.nodes.iter().all(knows_all));
    }
}

fn start_node(flavor: Flavor) -> Server {
    let settings = [
        ("--cluster-enabled", "yes"),
        ("--cluster-config-file", "nodes.conf"),
        ("--cluster-node-timeout", NODE_TIMEOUT),
        // A replica may take over however old its data is, also on a slow machine.
        ("--cluster-replica-validity-factor", "0"),
        // Replicas keep their primary, even if it loses all slots.
        ("--cluster-allow-replica-migration", "no"),
        ("--repl-diskless-sync-delay", "0"),
    ];
    let words = settings.into_iter().flat_map(|(name, value)| [name, value]);
    Server::builder(flavor).args(words).start()
}

/// Runs a command that must succeed. Returns the reply.
pub(super) fn ok(node: &Server, command: &[&str]) -> String {
    let reply = node.raw().call(command);
    assert!(!reply.is_error(), "{} refuses {}: {}", node.port(), command.join(" "), reply.error());
    reply.text().to_owned()
}
