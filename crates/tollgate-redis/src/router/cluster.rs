//! Redis Cluster: each slot has its server, and slots migrate.
//!
//! A call goes to the known owner of its slot. A node that replies with a redirection has not run the call;
//! the call is then sent to the node in that reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::topology::{Topology, parse_slots};
use super::{Scripting, Server};
use crate::address::{HostPort, Login};
use crate::connection::{Endpoint, ServerInfo, Target, Tls};
use crate::failure::Failure;
use crate::link::{Link, LinkLimits};
use crate::resp::Command;
use crate::script::Programs;
use crate::slot::Slot;

/// Maximum age of the topology before a refresh.
const MAX_TOPOLOGY_AGE: Duration = Duration::from_secs(15);

/// Minimum age of the topology before a refresh because a node does not have a key.
const MIN_TOPOLOGY_AGE: Duration = Duration::from_millis(100);

/// The settings for all nodes of a cluster.
#[derive(Debug)]
pub(crate) struct NodeSettings {
    pub(crate) login: Option<Login>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) limits: LinkLimits,
    pub(crate) programs: Arc<Programs>,
    pub(crate) scripting: Scripting,
}

/// A cluster and its known topology.
#[derive(Debug)]
pub(crate) struct Cluster {
    settings: NodeSettings,
    seeds: Vec<HostPort>,
    topology: Mutex<Topology>,
    refreshed_at: Mutex<Option<Instant>>,
    is_refreshing: AtomicBool,
}

impl NodeSettings {
    fn target(&self, host_port: &HostPort) -> Target {
        let endpoint = Endpoint::new(host_port.clone(), self.tls.as_ref());
        Target { endpoint, login: self.login.clone(), database: 0 }
    }

    fn server(&self, host_port: &HostPort) -> Server {
        let link = Link::new(self.target(host_port), self.limits);
        Server::new(link, Arc::clone(&self.programs), self.scripting)
    }
}

impl Cluster {
    pub(crate) fn new(seeds: Vec<HostPort>, settings: NodeSettings) -> Self {
        let mut topology = Topology::new();
        for seed in &seeds {
            topology.member(seed, |host_port| settings.server(host_port));
        }
        let (topology, refreshed_at) = (Mutex::new(topology), Mutex::default());
        let is_refreshing = AtomicBool::new(false);
        Self { settings, seeds, topology, refreshed_at, is_refreshing }
    }

    /// Returns the owner of a slot, or any node if it is unknown: that node redirects.
    pub(super) fn server_of(self: &Arc<Self>, slot: Slot) -> Result<Arc<Server>, Failure> {
        if self.is_older_than(MAX_TOPOLOGY_AGE) {
            self.refresh_in_background();
        }
        let topology = self.topology.lock();
        topology.owner(slot).or_else(|| topology.any_member()).ok_or_else(no_known_node)
    }

    /// Returns the owner of a slot, if it is known and accepts keys of several slots in one call.
    pub(super) fn node_of(self: &Arc<Self>, slot: Slot) -> Option<Arc<Server>> {
        if self.is_older_than(MAX_TOPOLOGY_AGE) {
            self.refresh_in_background();
        }
        let owner = self.topology.lock().owner(slot);
        owner.filter(|server| server.node_batching().is_enabled(Instant::now()))
    }

    /// Sets the owner of a slot, which another node named.
    pub(super) fn assign(self: &Arc<Self>, slot: Slot, host_port: &HostPort) -> Arc<Server> {
        let server = self.member(host_port);
        self.topology.lock().assign(slot, Arc::clone(&server));
        self.refresh_in_background();
        server
    }

    pub(super) fn member(&self, host_port: &HostPort) -> Arc<Server> {
        self.topology.lock().member(host_port, |host_port| self.settings.server(host_port))
    }

    fn is_older_than(&self, age: Duration) -> bool {
        self.refreshed_at.lock().is_none_or(|at| at.elapsed() > age)
    }

    /// Refreshes the topology in the background, unless it is new. While a slot migrates, its keys are on two nodes, and
    /// each plan with such a key calls this function.
    pub(super) fn refresh_if_old(self: &Arc<Self>) {
        if self.is_older_than(MIN_TOPOLOGY_AGE) {
            self.refresh_in_background();
        }
    }

    /// Refreshes the topology in the background, unless a refresh is running.
    pub(super) fn refresh_in_background(self: &Arc<Self>) {
        if self.is_refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let guard = RefreshGuard(Arc::clone(self));
        let refresh = async move { drop(guard.0.refresh().await) };
        // Calls that fail because their runtime shuts down end here too, without a runtime.
        drop(Handle::try_current().map(|runtime| runtime.spawn(refresh)));
    }

    /// Reads the slot owners from the first node that knows them.
    async fn refresh(&self) -> Result<(), Failure> {
        let mut last_failure = no_known_node();
        let mut members = self.topology.lock().members();
        members.extend(self.seeds.iter().map(|seed| self.member(seed)));
        for member in members {
            let Some(host_port) = member.host_port() else { continue };
            let command = Command::new("CLUSTER").arg("SLOTS");
            let reply = member.link().request(command).await;
            match reply.map(|reply| parse_slots(&reply, host_port)) {
                Ok(Some(ranges)) if !ranges.is_empty() => {
                    let server = |host_port: &HostPort| self.settings.server(host_port);
                    self.topology.lock().update(&ranges, server);
                    *self.refreshed_at.lock() = Some(Instant::now());
                    return Ok(());
                }
                Ok(_) => last_failure = not_a_cluster(host_port),
                Err(failure) => last_failure = last_failure.then(failure),
            }
        }
        Err(last_failure)
    }

    /// Checks that all primaries of the cluster can be reached.
    pub(crate) async fn open(&self) -> Result<Option<ServerInfo>, Failure> {
        // A first connection may take the whole connect timeout, which exceeds the reply timeout.
        for seed in &self.seeds {
            if self.member(seed).link().open().await.is_ok() {
                break;
            }
        }
        self.refresh().await.map_err(explain_refresh)?;
        let mut info = None;
        let primaries = self.topology.lock().primaries();
        for member in primaries {
            info = info.or(member.link().open().await?);
        }
        Ok(info)
    }

    /// Returns the host and port of the nodes that get a call per slot.
    pub(crate) fn nodes_without_batching(&self) -> Vec<String> {
        let primaries = self.topology.lock().primaries();
        let now = Instant::now();
        let without = primaries.iter().filter(|node| !node.node_batching().is_enabled(now));
        without.filter_map(|node| node.host_port()).map(HostPort::to_string).collect()
    }

    /// Returns the links to all primaries, in an order that is stable while the cluster does not change.
    pub(crate) async fn links(&self) -> Result<Vec<Link>, Failure> {
        if self.is_older_than(MAX_TOPOLOGY_AGE) {
            self.refresh().await?;
        }
        let primaries = self.topology.lock().primaries();
        Ok(primaries.iter().map(|member| member.link().clone()).collect())
    }
}

/// Marks a refresh as running until dropped, also if its runtime shuts down.
struct RefreshGuard(Arc<Cluster>);

impl Drop for RefreshGuard {
    fn drop(&mut self) {
        self.0.is_refreshing.store(false, Ordering::Release);
    }
}

/// A server without cluster mode needs another address. A cluster that is not formed yet may need only time.
fn explain_refresh(failure: Failure) -> Failure {
    match failure {
        Failure::Refused(error) if error.message.contains("cluster support disabled") => {
            Failure::Misconfigured(
                "Redis is not a node of a cluster: use a redis:// address".to_owned(),
            )
        }
        failure => failure,
    }
}

fn no_known_node() -> Failure {
    Failure::Unreachable("no node of the cluster is known".to_owned())
}

fn not_a_cluster(host_port: &HostPort) -> Failure {
    Failure::Unreachable(format!("Redis at {host_port} is not a node of a cluster with slots"))
}
