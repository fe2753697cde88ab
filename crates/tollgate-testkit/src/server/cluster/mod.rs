//! A cluster of real servers, with slot migration and failover.

use std::time::{Duration, Instant};

mod form;
mod migration;
mod slot;
mod view;

pub use migration::Migration;
pub use slot::slot_of;

use super::{Flavor, Server};
use crate::wait::{MAX_WAIT, eventually, pause, retry_until};
use slot::SLOTS;
use view::{Member, Role, members_of};

/// The time after which a requested failover is requested again. Servers abandon a failover after five seconds, and
/// vote rarely.
const FAILOVER_RETRY: Duration = Duration::from_secs(6);

/// A cluster. Its nodes can be killed, hung and restarted as any [`Server`]: a restarted node is empty, still knows the
/// others, and becomes a replica of the primary that replaced it.
///
/// ```no_run
/// use tollgate_testkit::server::{Cluster, Flavor, slot_of};
///
/// let cluster = Cluster::start(Flavor::Redis);
/// let primary = cluster.primary_of_slot(slot_of("key"));
/// primary.kill();
/// cluster.wait_ok();
/// assert_ne!(cluster.primary_of_slot(slot_of("key")).port(), primary.port());
/// ```
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    /// The cluster id of each node, which a restart keeps.
    ids: Vec<String>,
}

impl Cluster {
    /// Starts three primaries with one replica each.
    pub fn start(flavor: Flavor) -> Self {
        Self::of(flavor, 3, 1)
    }

    /// Starts primaries, first in [`Cluster::nodes`], and their replicas, and waits until the cluster is ready. With
    /// fewer than three primaries there is no automatic failover, because the others are not a majority.
    ///
    /// # Panics
    /// If the cluster is not ready in time.
    pub fn of(flavor: Flavor, primaries: u16, replicas_each: u16) -> Self {
        let cluster = Self::form(flavor, primaries, replicas_each);
        cluster.wait_ok();
        cluster
    }

    /// Returns the URL for clients, with the first three nodes.
    pub fn url(&self) -> String {
        let nodes = self.nodes.iter().take(3).map(|node| format!("127.0.0.1:{}", node.port()));
        format!("redis+cluster://{}", nodes.collect::<Vec<_>>().join(","))
    }

    /// Returns the ports of all nodes.
    pub fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(Server::port).collect()
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Returns the primary of a slot. Waits while the slot has none, as after its primary was killed.
    pub fn primary_of_slot(&self, slot: u16) -> &Server {
        assert!(slot < SLOTS, "slot {slot} does not exist");
        let mut found = None;
        eventually("the slot has a primary", || {
            found = self.owner(slot);
            found.is_some()
        });
        found.expect("the wait found it")
    }

    /// Returns the running replicas of a primary.
    pub fn replicas_of(&self, primary: &Server) -> Vec<&Server> {
        let id = self.id(primary);
        let replicates = |node: &&Server| {
            myself(node).is_some_and(|member| member.primary.as_deref() == Some(id))
        };
        self.nodes.iter().filter(replicates).collect()
    }

    /// Promotes a replica in coordination with its primary, so that no data is lost.
    ///
    /// # Panics
    /// If the failover does not succeed in time.
    pub fn failover(&self, replica: &Server) {
        let request = || drop(replica.raw().call(&["CLUSTER", "FAILOVER"]));
        retry_until("a replica became primary", FAILOVER_RETRY, request, || {
            myself(replica).is_some_and(|member| member.is("master"))
        });
        self.wait_ok();
    }

    /// Waits until the running nodes have all slots and agree on their owners, and replicas have the data of their
    /// primaries.
    ///
    /// # Panics
    /// If that does not happen in time, with the view of each node.
    pub fn wait_ok(&self) {
        let began = Instant::now();
        while !self.is_ok() {
            assert!(began.elapsed() < MAX_WAIT, "the cluster is not ready:\n{}", self.views());
            pause();
        }
    }

    /// Returns the cluster id of a node.
    fn id(&self, node: &Server) -> &str {
        let index = self.nodes.iter().position(|known| known.port() == node.port());
        &self.ids[index.expect("the node is in this cluster")]
    }

    /// Returns the node that claims a slot with the highest epoch: a node that hung may still claim a lost slot.
    fn owner(&self, slot: u16) -> Option<&Server> {
        let claims = self.nodes.iter().filter_map(|node| Some((node, myself(node)?)));
        let claims = claims.filter(|(_, member)| member.is("master") && member.has(slot));
        claims.max_by_key(|(_, member)| member.epoch).map(|(node, _)| node)
    }

    fn is_ok(&self) -> bool {
        let up = self.nodes.iter().filter(|node| node.is_up()).collect::<Vec<_>>();
        let mut views = up.iter().map(|node| self.roles(node));
        let Some(Some(first)) = views.next() else { return false };
        views.all(|view| view.as_ref() == Some(&first)) && up.iter().all(|node| is_ready(node))
    }

    /// Returns the roles of the running nodes as a node sees them; `None` if it suspects one of them, or if nodes that
    /// do not run have slots.
    fn roles(&self, node: &Server) -> Option<Vec<Role>> {
        let is_up = |member: &Member| {
            let node = self.nodes.iter().find(|node| node.port() == member.port);
            node.is_some_and(Server::is_up)
        };
        let (up, down): (Vec<_>, Vec<_>) = members_of(node)?.into_iter().partition(is_up);
        let is_consistent = down.iter().all(|member| member.slots.is_empty())
            && !up.iter().any(Member::is_suspected);
        is_consistent.then(|| up.into_iter().map(Member::role).collect())
    }

    /// Returns `CLUSTER NODES` of each node, for error messages.
    fn views(&self) -> String {
        let view = |node: &Server| {
            let members = node.try_call(&["CLUSTER", "NODES"]);
            let members = members.as_ref().map_or("no reply", |members| members.text());
            format!("view of {}:\n{members}\n", node.port())
        };
        self.nodes.iter().map(view).collect()
    }
}

/// Returns a node's view of itself; `None` if it is not up.
fn myself(node: &Server) -> Option<Member> {
    members_of(node)?.into_iter().find(|member| member.is("myself"))
}

/// Returns whether a node accepts requests and, as a replica, has the data of its primary.
fn is_ready(node: &Server) -> bool {
    let has_line = |command: &[&str], line: &str| {
        node.try_call(command).is_some_and(|reply| reply.text().lines().any(|found| found == line))
    };
    let replication = ["INFO", "replication"];
    has_line(&["CLUSTER", "INFO"], "cluster_state:ok")
        && (has_line(&replication, "role:master")
            || has_line(&replication, "master_link_status:up"))
}
