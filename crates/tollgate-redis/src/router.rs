//! Routing of requests to the servers of a deployment.

use std::sync::Arc;

use crate::call::Call;
use crate::connection::ServerInfo;
use crate::failure::Failure;
use crate::link::{Link, OnReply, reply_channel};
use crate::resp::{Command, Reply};
use crate::slot::Slot;

mod cluster;
mod failover;
mod program_runner;

pub(crate) use cluster::{Cluster, NodeSettings};
pub(crate) use failover::FailoverWatcher;
pub(crate) use program_runner::ProgramRunner;
use program_runner::Request;
pub use program_runner::Scripting;

/// The servers of a deployment.
#[derive(Debug)]
pub(crate) enum Router {
    /// One server has all keys. With sentinels, a watcher follows failovers.
    Single(Arc<ProgramRunner>, Option<FailoverWatcher>),
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

    /// Calls a program on the server of a slot. `on_reply` is called once and must not block.
    pub(crate) fn call(&self, slot: Slot, call: Arc<Call>, on_reply: OnReply) {
        self.send(slot, Request::Program(call), on_reply);
    }

    fn send(&self, slot: Slot, request: Request, on_reply: OnReply) {
        match self {
            Self::Single(runner, watcher) => {
                if let Some(watcher) = watcher {
                    watcher.start(runner.link());
                }
                runner.send(request, on_reply);
            }
            Self::Cluster(cluster) => cluster.send(slot, request, on_reply),
        }
    }

    /// Calls a program on the server of its first key. The call is sent before the future is polled.
    pub(crate) fn run(&self, call: Call) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        let slot = call.keys.first().map_or(Slot::ONLY, |key| self.slot(key));
        let (on_reply, reply) = reply_channel();
        self.call(slot, Arc::new(call), on_reply);
        reply
    }

    /// Sends a command to the server of a key.
    pub(crate) async fn request(&self, key: &[u8], command: Command) -> Result<Reply, Failure> {
        let (on_reply, reply) = reply_channel();
        self.send(self.slot(key), Request::Command(command), on_reply);
        reply.await
    }

    /// Returns the servers with keys, in a stable order.
    pub(crate) async fn servers(&self) -> Result<Vec<Link>, Failure> {
        match self {
            Self::Single(runner, _) => Ok(vec![runner.link().clone()]),
            Self::Cluster(cluster) => cluster.links().await,
        }
    }

    /// Checks that all servers can be reached and used. Returns their software and version, if known.
    pub(crate) async fn open(&self) -> Result<Option<ServerInfo>, Failure> {
        match self {
            Self::Single(runner, _) => open_single(runner.link()).await,
            Self::Cluster(cluster) => cluster.open().await,
        }
    }
}

/// Rejects cluster nodes, replicas and sentinels now, instead of at the first request.
async fn open_single(link: &Link) -> Result<Option<ServerInfo>, Failure> {
    let info = link.open().await?;
    let unusable = |reason: &str| Err(Failure::Unreachable(format!("Redis at {link} {reason}")));
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
