//! A link: one multiplexed connection to one server, shared by many callers.
//!
//! Commands wait in a queue. One driver task writes them, matches replies to commands by their order, and
//! connects when commands wait and there is no connection. A caller may stop waiting at any time; its command
//! is sent anyway, unless it has a gate through which the caller withdraws it.
//!
//! A command is never sent twice. It stays in the queue until the socket (or TLS before it) accepts its first
//! byte. From then on it may have run, and if the connection is lost, its reply is lost too.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::connection::{Route, ServerInfo};
use crate::failure::Failure;
use crate::resp::{Command, Reply};

mod command_queue;
mod deadline_timer;
mod driver;
mod pipeline;
mod send_gate;
#[cfg(test)]
mod tests;

use command_queue::{CommandQueue, DriverAction, OnReply, Pending};
use driver::Driver;
pub(crate) use send_gate::SendGate;

/// Timeouts and queue size of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkLimits {
    /// Maximum time to connect. It may exceed `reply_timeout`: a later command uses the connection.
    pub(crate) connect_timeout: Duration,
    /// Maximum time from queueing a command to its reply.
    pub(crate) reply_timeout: Duration,
    /// Maximum number of commands that are queued or in flight.
    pub(crate) max_pending: usize,
}

impl Default for LinkLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(1),
            reply_timeout: Duration::from_millis(100),
            max_pending: 10_000,
        }
    }
}

/// A handle of a link. Dropping the last handle closes the connection after all replies.
#[derive(Clone)]
pub(crate) struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Arc<CommandQueue>,
    route: Arc<Route>,
    limits: LinkLimits,
}

impl Link {
    /// Creates a link. It does not connect and needs no runtime yet.
    pub(crate) fn new(route: impl Into<Route>, limits: LinkLimits) -> Self {
        let queue = Arc::new(CommandQueue::new(limits.max_pending));
        Self { inner: Arc::new(Inner { queue, route: Arc::new(route.into()), limits }) }
    }

    /// Queues a command. The driver calls `on_reply` once, with the reply or the failure. If the command
    /// cannot be queued, this function calls it, so the caller must hold no lock that `on_reply` takes.
    /// `on_reply` must not block. Commands that it sends leave together when it returns.
    pub(crate) fn send(&self, command: Command, on_reply: OnReply) {
        self.send_through(command, None, on_reply);
    }

    /// Like [`send`](Self::send), with a gate. If the command is withdrawn, it fails with [`Failure::Withdrawn`]
    /// when it could be sent.
    pub(crate) fn send_through(
        &self,
        command: Command,
        gate: Option<Arc<SendGate>>,
        on_reply: OnReply,
    ) {
        let now = Instant::now();
        let deadline = now + self.inner.limits.reply_timeout;
        let (reply_cap, skipped_replies) = (command.reply_cap(), command.skipped_replies());
        let bytes = command.into_bytes();
        let pending = Pending { bytes, reply_cap, skipped_replies, deadline, gate, on_reply };
        match self.inner.queue.push(pending, now) {
            Ok(action) => self.perform(action),
            Err((on_reply, failure)) => on_reply(Err(failure)),
        }
    }

    /// Sends a command and waits for its reply.
    pub(crate) async fn request(&self, command: Command) -> Result<Reply, Failure> {
        let (on_reply, reply) = reply_channel();
        self.send(command, Box::new(on_reply));
        reply.await
    }

    /// Checks the connection with a PING, and connects if there is none, even immediately after a failed
    /// attempt. Returns the server's software and version, if known.
    pub(crate) async fn open(&self) -> Result<Option<ServerInfo>, Failure> {
        let (sender, receiver) = oneshot::channel();
        let action = self.inner.queue.request_open(sender)?;
        self.perform(action);
        let stopped = || Failure::Unreachable("the connection task has stopped".to_owned());
        let info = receiver.await.unwrap_or_else(|_| Err(stopped()))?;
        // The connection may be old.
        self.request(Command::new("PING")).await?;
        Ok(info)
    }

    /// Closes the connection after all replies in flight, because its server is no longer the right one. The
    /// next command connects again.
    pub(crate) fn reconnect(&self) {
        if let Some(driver) = self.inner.queue.retire_connection() {
            driver.wake();
        }
    }

    /// Whether the server is connected and has not been silent for this time. A server is silent while commands are
    /// pending and none gets a reply.
    pub(crate) fn is_replying(&self, max_silence: Duration) -> bool {
        self.inner.queue.is_replying(Instant::now(), max_silence)
    }

    /// Returns the time since the server last replied, or had nothing to reply to. `None` without a connection.
    pub(crate) fn silence(&self, now: Instant) -> Option<Duration> {
        self.inner.queue.silence(now)
    }

    /// Returns the maximum time from queueing a command to its reply.
    pub(crate) fn reply_timeout(&self) -> Duration {
        self.inner.limits.reply_timeout
    }

    fn perform(&self, action: DriverAction) {
        match action {
            DriverAction::None => {}
            DriverAction::Wake(driver) => driver.wake(),
            // A runtime that shuts down drops the driver, which fails all waiting commands.
            DriverAction::Spawn(runtime) => {
                let Inner { queue, route, limits } = &*self.inner;
                let driver = Driver::new(Arc::clone(queue), Arc::clone(route), *limits);
                drop(runtime.spawn(driver));
            }
        }
    }
}

#[cfg(tollgate_model)]
impl Link {
    /// Returns the number of commands that are queued or in flight.
    pub(crate) fn pending(&self) -> usize {
        self.inner.queue.pending()
    }
}

/// Returns a callback and the future of its reply: where callbacks end and a caller waits.
pub(crate) fn reply_channel() -> (
    impl FnOnce(Result<Reply, Failure>) + Send + 'static,
    impl Future<Output = Result<Reply, Failure>>,
) {
    let (sender, receiver) = oneshot::channel();
    let reply = async {
        let stopped = || Failure::Lost("the connection task has stopped".to_owned());
        receiver.await.unwrap_or_else(|_| Err(stopped()))
    };
    (|reply| drop(sender.send(reply)), reply)
}

/// The server, as in error messages.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.route.fmt(f)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("route", &self.inner.route).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.close();
    }
}
