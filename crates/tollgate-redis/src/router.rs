//! Which server is asked.

use std::sync::Arc;

use crate::call::Call;
use crate::caller::{Caller, Work};
use crate::cluster::Cluster;
use crate::connection::ServerInfo;
use crate::failure::Failure;
use crate::link::{Link, Then, promised};
use crate::resp::{Command, Reply};
use crate::sentinel::Follower;
use crate::slot::Slot;

/// The servers of a deployment.
#[derive(Debug)]
pub(crate) enum Router {
    /// One server has everything. Sentinels may tell that it is another now.
    One(Arc<Caller>, Option<Follower>),
    /// Each slot has its server.
    Cluster(Arc<Cluster>),
}

impl Router {
    /// Whether keys may be on different servers.
    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Where the key is.
    pub(crate) fn slot(&self, key: &[u8]) -> Slot {
        match self {
            Self::One(..) => Slot::ONLY,
            Self::Cluster(_) => Slot::of(key),
        }
    }

    /// Calls a program where the slot is. `then` is told once, and must not block.
    pub(crate) fn call(&self, slot: Slot, call: Arc<Call>, then: Then) {
        self.send(slot, Work::Program(call), then);
    }

    fn send(&self, slot: Slot, work: Work, then: Then) {
        match self {
            Self::One(caller, follower) => {
                if let Some(follower) = follower {
                    follower.begin(caller.link());
                }
                caller.send(work, then);
            }
            Self::Cluster(cluster) => cluster.send(slot, work, then),
        }
    }

    /// Calls a program where its first key is. The call is on its way when this returns.
    pub(crate) fn run(&self, call: Call) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        let slot = call.keys.first().map_or(Slot::ONLY, |key| self.slot(key));
        let (then, reply) = promised();
        self.call(slot, Arc::new(call), then);
        reply
    }

    /// Asks where the key is.
    pub(crate) async fn ask(&self, key: &[u8], command: Command) -> Result<Reply, Failure> {
        let (then, reply) = promised();
        self.send(self.slot(key), Work::Plain(command), then);
        reply.await
    }

    /// The servers that have keys, in an order that stays.
    pub(crate) async fn servers(&self) -> Result<Vec<Link>, Failure> {
        match self {
            Self::One(caller, _) => Ok(vec![caller.link().clone()]),
            Self::Cluster(cluster) => cluster.links().await,
        }
    }

    /// Proves that it can be reached and used, and tells what it is.
    pub(crate) async fn open(&self) -> Result<Option<ServerInfo>, Failure> {
        match self {
            Self::One(caller, _) => open_one(caller.link()).await,
            Self::Cluster(cluster) => cluster.open().await,
        }
    }
}

/// One server must be alone, and no replica: else it would be found out by the first who asks, or the second.
async fn open_one(link: &Link) -> Result<Option<ServerInfo>, Failure> {
    let info = link.open().await?;
    let unusable = |why: &str| Err(Failure::Unreachable(format!("Redis at {link} {why}")));
    if info.as_ref().is_some_and(|info| info.is_in_cluster) {
        return unusable("is a node of a cluster: the address must begin with redis+cluster://");
    }
    // Who may not ask finds out later.
    match link.ask(Command::new("ROLE")).await {
        Ok(Reply::Array(parts)) => match parts.first() {
            Some(Reply::Bulk(role)) if role == b"slave" => {
                unusable("is a replica: the address must be that of the primary")
            }
            Some(Reply::Bulk(role)) if role == b"sentinel" => {
                unusable("is a sentinel: the address must begin with redis+sentinel://")
            }
            _ => Ok(info),
        },
        _ => Ok(info),
    }
}
