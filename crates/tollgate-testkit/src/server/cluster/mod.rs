//! A cluster of real servers, with slots that move and primaries that die.

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
use view::{Member, Role, seen_by};

/// How long a failover that was asked for may take before it is asked for again. Servers give up on it
/// after five seconds, and vote only once in a while.
const FAILOVER: Duration = Duration::from_secs(6);

/// Servers that share the slots. Its nodes are killed, hung and restarted as any [`Server`]: a node that
/// restarts is empty but knows the others still, and copies who has replaced it.
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
    /// What each calls itself, which outlives it.
    ids: Vec<String>,
}

impl Cluster {
    /// Three primaries, with one replica each.
    pub fn start(flavor: Flavor) -> Self {
        Self::of(flavor, 3, 1)
    }

    /// Some primaries, first in [`Cluster::nodes`], then their replicas. All is well when it returns. With
    /// fewer than three primaries none can be replaced when it dies: the others are no majority.
    ///
    /// # Panics
    /// If it does not come to be.
    pub fn of(flavor: Flavor, primaries: u16, replicas_each: u16) -> Self {
        let cluster = Self::form(flavor, primaries, replicas_each);
        cluster.wait_ok();
        cluster
    }

    /// Its address for clients: of the first nodes, who know the others.
    pub fn url(&self) -> String {
        let nodes = self.nodes.iter().take(3).map(|node| format!("127.0.0.1:{}", node.port()));
        format!("redis+cluster://{}", nodes.collect::<Vec<_>>().join(","))
    }

    /// The ports of all nodes.
    pub fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(Server::port).collect()
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Who has a slot now; waits while nobody has it, as when its primary was killed.
    pub fn primary_of_slot(&self, slot: u16) -> &Server {
        assert!(slot < SLOTS, "there is no slot {slot}");
        let mut found = None;
        eventually("somebody has the slot", || {
            found = self.owner(slot);
            found.is_some()
        });
        found.expect("it was found")
    }

    /// The nodes that copy a node, of those that are up.
    pub fn replicas_of(&self, primary: &Server) -> Vec<&Server> {
        let id = self.id(primary);
        let copies =
            |node: &&Server| myself(node).is_some_and(|own| own.primary.as_deref() == Some(id));
        self.nodes.iter().filter(copies).collect()
    }

    /// Makes a replica the primary, with the primary's consent: nothing is lost.
    ///
    /// # Panics
    /// If it does not become so.
    pub fn failover(&self, replica: &Server) {
        let ask = || drop(replica.raw().call(&["CLUSTER", "FAILOVER"]));
        retry_until("a replica became primary", FAILOVER, ask, || {
            myself(replica).is_some_and(|own| own.is("master"))
        });
        self.wait_ok();
    }

    /// Waits until the nodes that are up have all slots, agree on who has which, and replicas have what
    /// their primaries have.
    ///
    /// # Panics
    /// If that does not come to be, with what each node says.
    pub fn wait_ok(&self) {
        let began = Instant::now();
        while !self.is_ok() {
            assert!(began.elapsed() < MAX_WAIT, "the cluster is not well:\n{}", self.told());
            pause();
        }
    }

    /// The node's name among the others.
    fn id(&self, node: &Server) -> &str {
        let place = self.nodes.iter().position(|own| own.port() == node.port());
        &self.ids[place.expect("it is a node of this cluster")]
    }

    /// Who says that it has a slot; the latest to have got it, for one that hung does not know yet that
    /// it has lost it.
    fn owner(&self, slot: u16) -> Option<&Server> {
        let claims = self.nodes.iter().filter_map(|node| Some((node, myself(node)?)));
        let claims = claims.filter(|(_, own)| own.is("master") && own.has(slot));
        claims.max_by_key(|(_, own)| own.epoch).map(|(node, _)| node)
    }

    fn is_ok(&self) -> bool {
        let up = self.nodes.iter().filter(|node| node.is_up()).collect::<Vec<_>>();
        let mut views = up.iter().map(|node| self.roles(node));
        let Some(Some(first)) = views.next() else { return false };
        views.all(|view| view.as_ref() == Some(&first)) && up.iter().all(|node| is_settled(node))
    }

    /// Who copies whom and has which slots, as a node sees those that are up; nothing if it has doubts, or
    /// some slots are in the hands of others.
    fn roles(&self, node: &Server) -> Option<Vec<Role>> {
        let is_up = |member: &Member| {
            let node = self.nodes.iter().find(|node| node.port() == member.port);
            node.is_some_and(Server::is_up)
        };
        let (up, down): (Vec<_>, Vec<_>) = seen_by(node)?.into_iter().partition(is_up);
        let is_well =
            down.iter().all(|it| it.slots.is_empty()) && !up.iter().any(Member::is_doubted);
        is_well.then(|| up.into_iter().map(Member::role).collect())
    }

    /// What each node says, for who must find out what is wrong.
    fn told(&self) -> String {
        let tell = |node: &Server| {
            let members = node.try_call(&["CLUSTER", "NODES"]);
            let members = members.as_ref().map_or("nothing", |members| members.text());
            format!("{} says\n{members}\n", node.port())
        };
        self.nodes.iter().map(tell).collect()
    }
}

/// A node as it sees itself; nothing if it is not up.
fn myself(node: &Server) -> Option<Member> {
    seen_by(node)?.into_iter().find(|member| member.is("myself"))
}

/// Whether it takes requests, and has the data of its primary if it is a replica.
fn is_settled(node: &Server) -> bool {
    let says = |command: &[&str], line: &str| {
        node.try_call(command).is_some_and(|told| told.text().lines().any(|own| own == line))
    };
    let replication = ["INFO", "replication"];
    says(&["CLUSTER", "INFO"], "cluster_state:ok")
        && (says(&replication, "role:master") || says(&replication, "master_link_status:up"))
}
