//! Routing of requests to the servers of a deployment.
//!
//! A request is sent with a callback, which runs exactly once, mostly in the driver task of a link. Below the futures
//! of the callers, each step of a request is such a callback: no caller has to be polled, or to exist, for the next
//! step. A request that may have run is never sent again.

use std::sync::Arc;

use crate::call::Call;
use crate::connection::ServerInfo;
use crate::failure::Failure;
use crate::link::{Link, SendGate, reply_channel};
use crate::resp::{Command, Reply};
use crate::slot::Slot;

mod attempt;
mod cluster;
mod completion;
mod failover;
mod lane;
mod node_batching;
mod redirect;
mod server;
mod topology;

use attempt::{Attempt, Request};
pub(crate) use cluster::{Cluster, NodeSettings};
use completion::Completion;
pub(crate) use failover::FailoverWatcher;
pub(crate) use lane::{Lane, Scope};
use redirect::Redirect;
pub use server::Scripting;
pub(crate) use server::Server;

/// The servers of a deployment.
#[derive(Debug)]
pub(crate) enum Router {
    /// One server has all keys. With sentinels, a watcher follows failovers.
    Single(Arc<Server>, Option<FailoverWatcher>),
    /// Each slot has its server.
    Cluster(Arc<Cluster>),
}

impl Router {
    /// Whether keys may be on different servers.
    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Returns the slot of a key.
    pub(crate) fn slot(&self, key: &[u8]) -> Slot {
        match self {
            Self::Single(..) => Slot::ONLY,
            Self::Cluster(_) => Slot::of(key),
        }
    }

    /// Returns the lane of a slot: of the node that serves it, if the node accepts several slots in one call.
    pub(crate) fn lane(&self, slot: Slot) -> Result<Lane, Failure> {
        match self {
            Self::Single(..) => self.slot_lane(slot),
            Self::Cluster(cluster) => match cluster.node_of(slot) {
                Some(server) => Ok(Lane { server, scope: Scope::Node }),
                None => self.slot_lane(slot),
            },
        }
    }

    /// Whether the failure proves that no plan of a call to a cluster node has run, so that each may be sent to the
    /// owner of its slot.
    pub(crate) fn is_misdirected(&self, lane: &Lane, failure: &Failure) -> bool {
        let node = lane.server.host_port().filter(|_| lane.scope == Scope::Node);
        node.is_some_and(|node| {
            failure.is_refused_write_of_cluster() || Redirect::of(failure, node).is_some()
        })
    }

    /// Refreshes the topology of a cluster, because a node does not have a key.
    pub(crate) fn refresh(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.refresh_if_old();
        }
    }

    /// Returns the lane of a slot alone.
    pub(crate) fn slot_lane(&self, slot: Slot) -> Result<Lane, Failure> {
        match self {
            Self::Single(server, _) => {
                Ok(Lane { server: Arc::clone(server), scope: Scope::Server })
            }
            Self::Cluster(cluster) => {
                Ok(Lane { server: cluster.server_of(slot)?, scope: Scope::Slot(slot) })
            }
        }
    }

    /// Calls a program in a lane. The caller may withdraw the call with `gate` until it is sent. `on_reply` is called
    /// exactly once and must not block. If the call cannot be sent, this function calls it.
    pub(crate) fn call(
        &self,
        lane: &Lane,
        call: Call,
        gate: Arc<SendGate>,
        on_reply: impl FnOnce(Result<Reply, Failure>) + Send + 'static,
    ) {
        let (request, completion) = (Request::Program(call), Completion::new(on_reply));
        match (self, lane.scope) {
            (Self::Cluster(cluster), Scope::Slot(slot)) => match cluster.server_of(slot) {
                Ok(server) => {
                    let attempt = Attempt::new(server, slot, request, completion);
                    attempt.through(gate).within(cluster).send();
                }
                Err(failure) => completion.complete(Err(failure)),
            },
            (Self::Cluster(cluster), Scope::Server | Scope::Node) => {
                let server = Arc::clone(&lane.server);
                let attempt = Attempt::new(server, Slot::ONLY, request, completion);
                attempt.through(gate).on_node_of(cluster).send();
            }
            (Self::Single(server, watcher), _) => {
                if let Some(watcher) = watcher {
                    watcher.start(server.link());
                }
                let attempt = Attempt::new(Arc::clone(server), Slot::ONLY, request, completion);
                attempt.through(gate).send();
            }
        }
    }

    /// Calls a program on the server of its first key. The call is sent before the future is polled.
    pub(crate) fn run(&self, call: Call) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        let slot = call.keys.first().map_or(Slot::ONLY, |key| self.slot(key));
        let (on_reply, reply) = reply_channel();
        self.start(slot, Request::Program(call), on_reply);
        reply
    }

    /// Sends a command to the server of a key.
    pub(crate) async fn request(&self, key: &[u8], command: Command) -> Result<Reply, Failure> {
        let (on_reply, reply) = reply_channel();
        self.start(self.slot(key), Request::Command(command), on_reply);
        reply.await
    }

    fn start(
        &self,
        slot: Slot,
        request: Request,
        on_reply: impl FnOnce(Result<Reply, Failure>) + Send + 'static,
    ) {
        let completion = Completion::new(on_reply);
        match self {
            Self::Single(server, watcher) => {
                if let Some(watcher) = watcher {
                    watcher.start(server.link());
                }
                Attempt::new(Arc::clone(server), slot, request, completion).send();
            }
            Self::Cluster(cluster) => match cluster.server_of(slot) {
                Ok(server) => {
                    Attempt::new(server, slot, request, completion).within(cluster).send();
                }
                Err(failure) => completion.complete(Err(failure)),
            },
        }
    }

    /// Returns the nodes of a cluster that get a call per slot, because they refuse several slots in one call.
    pub(crate) fn nodes_without_batching(&self) -> Vec<String> {
        match self {
            Self::Single(..) => Vec::new(),
            Self::Cluster(cluster) => cluster.nodes_without_batching(),
        }
    }

    /// Returns the servers with keys, in a stable order.
    pub(crate) async fn servers(&self) -> Result<Vec<Link>, Failure> {
        match self {
            Self::Single(server, _) => Ok(vec![server.link().clone()]),
            Self::Cluster(cluster) => cluster.links().await,
        }
    }

    /// Checks that all servers can be reached and used. Returns their software and version, if known.
    pub(crate) async fn open(&self) -> Result<Option<ServerInfo>, Failure> {
        match self {
            Self::Single(server, _) => open_single(server.link()).await,
            Self::Cluster(cluster) => cluster.open().await,
        }
    }
}

/// Rejects cluster nodes, replicas and sentinels now, instead of at the first request.
async fn open_single(link: &Link) -> Result<Option<ServerInfo>, Failure> {
    let info = link.open().await?;
    let unusable = |reason: &str| Err(Failure::Misconfigured(format!("Redis at {link} {reason}")));
    if info.as_ref().is_some_and(|info| info.is_in_cluster) {
        return unusable("is a node of a cluster: use a redis+cluster:// address");
    }
    // Without the permission for ROLE, the first request finds out.
    match link.request(Command::new("ROLE")).await {
        Ok(Reply::Array(parts)) => match parts.first() {
            Some(Reply::Bulk(role)) if role == b"slave" => {
                unusable("is a replica: use the address of the primary")
            }
            Some(Reply::Bulk(role)) if role == b"sentinel" => {
                unusable("is a sentinel: use a redis+sentinel:// address")
            }
            _ => Ok(info),
        },
        _ => Ok(info),
    }
}
