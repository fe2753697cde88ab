//! Routing of requests to the servers of a deployment.
//!
//! Everything above a link waits with `async` functions, with one exception: a batch belongs to no caller, so the
//! driver of the link completes it by a callback ([`Router::call`]). Only if its reply proves that it has not run, a
//! task repeats it. A request that may have run is never sent again.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::call::{Call, Invocation};
use crate::connection::ServerInfo;
use crate::failure::Failure;
use crate::link::Link;
use crate::resp::{Command, Reply};
use crate::slot::Slot;

mod attempt;
mod cluster;
mod completion;
mod failover;
mod redirect;
mod server;
mod topology;

use attempt::{Attempt, Repeat, Request};
pub(crate) use cluster::{Cluster, NodeSettings};
use completion::Completion;
pub(crate) use failover::FailoverWatcher;
use server::Reload;
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

    /// Calls a program on the server of a slot. `on_reply` is called exactly once, mostly by the driver of the link,
    /// and must not block. If the call cannot be sent, this function calls it.
    pub(crate) fn call(
        self: &Arc<Self>,
        slot: Slot,
        call: Call,
        on_reply: impl FnOnce(Result<Reply, Failure>) + Send + 'static,
    ) {
        let attempt = match self.attempt(slot, Request::Program(call)) {
            Ok(attempt) => attempt,
            Err(failure) => return on_reply(Err(failure)),
        };
        let (server, command) = (Arc::clone(&attempt.server), attempt.command());
        let this = Arc::clone(self);
        let on_reply = move |result| match result {
            Err(failure) if this.repeat_after(&attempt, &failure).is_some() => {
                this.repeat_in_background(attempt, failure, on_reply);
            }
            result => on_reply(result),
        };
        server.link().send(command, Box::new(on_reply));
    }

    /// Calls a program on the server of its first key. The call is sent before the future is polled.
    pub(crate) fn run(
        self: &Arc<Self>,
        call: Call,
    ) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        let slot = call.keys.first().map_or(Slot::ONLY, |key| self.slot(key));
        self.send(slot, Request::Program(call))
    }

    /// Sends a command to the server of a key. It is sent before the future is polled.
    pub(crate) fn request(
        self: &Arc<Self>,
        key: &[u8],
        command: Command,
    ) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        self.send(self.slot(key), Request::Command(command))
    }

    fn send(
        self: &Arc<Self>,
        slot: Slot,
        request: Request,
    ) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        let sent = self.attempt(slot, request).map(|attempt| (attempt.send(), attempt));
        let this = Arc::clone(self);
        async move {
            let (reply, attempt) = sent?;
            let result = reply.await;
            this.finish(attempt, result).await
        }
    }

    /// Selects the server of a slot for a first attempt.
    fn attempt(&self, slot: Slot, request: Request) -> Result<Attempt, Failure> {
        let server = match self {
            Self::Single(server, watcher) => {
                if let Some(watcher) = watcher {
                    watcher.start(server.link());
                }
                Arc::clone(server)
            }
            Self::Cluster(cluster) => cluster.server_of(slot)?,
        };
        Ok(Attempt::new(slot, request, server))
    }

    /// Repeats a request until it may have run or a repetition does not help.
    async fn finish(
        &self,
        mut attempt: Attempt,
        mut result: Result<Reply, Failure>,
    ) -> Result<Reply, Failure> {
        loop {
            let Err(failure) = result else { return result };
            let Some(repeat) = self.repeat_after(&attempt, &failure) else { return Err(failure) };
            result = match self.prepare(&mut attempt, repeat).await {
                Ok(()) => attempt.send().await,
                Err(failure) => Err(failure),
            };
        }
    }

    fn repeat_after(&self, attempt: &Attempt, failure: &Failure) -> Option<Repeat> {
        if let Self::Cluster(cluster) = self
            && matches!(failure, Failure::Lost(_) | Failure::Timeout)
        {
            cluster.refresh_in_background();
        }
        attempt.repeat_after(failure)
    }

    async fn prepare(&self, attempt: &mut Attempt, repeat: Repeat) -> Result<(), Failure> {
        match (repeat, self) {
            (Repeat::Reload(Reload::Text), _) => attempt.invocation = Invocation::Text,
            (Repeat::Reload(Reload::Scripts), _) => {
                attempt.server.use_scripts();
                attempt.invocation = Invocation::Hash;
            }
            (Repeat::Reload(Reload::Library), _) => {
                attempt.loads += 1;
                attempt.server.load_library().await?;
            }
            (Repeat::Redirect(redirect), Self::Cluster(cluster)) => {
                cluster.redirect(attempt, redirect).await?;
            }
            // Only a node of a cluster redirects.
            (Repeat::Redirect(_), Self::Single(..)) => {}
        }
        Ok(())
    }

    /// Finishes a call in a task. Without a runtime, the drop of the completion fails it.
    fn repeat_in_background(
        self: Arc<Self>,
        attempt: Attempt,
        failure: Failure,
        on_reply: impl FnOnce(Result<Reply, Failure>) + Send + 'static,
    ) {
        let completion = Completion::new(on_reply);
        let repeat = async move {
            let result = self.finish(attempt, Err(failure)).await;
            completion.complete(result);
        };
        drop(Handle::try_current().map(|runtime| runtime.spawn(repeat)));
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
