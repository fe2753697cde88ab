//! The one connection that many callers share.
//!
//! Commands wait in a queue. A driver, one task, writes them all at once, hands replies out in the
//! order of the commands, and connects when somebody waits and there is no connection. Callers may go
//! away at any time: what they have queued goes its way without them.
//!
//! A command is never sent twice. It stays in the queue until the first of its bytes is taken by the
//! socket, or by TLS before it; from then on it may have run, and if the connection is lost so is its answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::connection::ServerInfo;
use crate::failure::Failure;
use crate::resp::{Command, Reply};
use crate::route::Route;

mod alarm;
mod driver;
mod shared;
#[cfg(test)]
mod tests;
mod wire;

use driver::Driver;
pub(crate) use shared::Then;
use shared::{Next, Pending, Shared};

/// How long we wait for a server, and how much may wait for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For a connection. No caller waits longer than for a reply: this goes on for the next one.
    pub(crate) connect: Duration,
    /// From when a command is queued until its reply is there.
    pub(crate) reply: Duration,
    /// How many commands may be queued or under way.
    pub(crate) in_flight: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            reply: Duration::from_millis(100),
            in_flight: 10_000,
        }
    }
}

/// A handle to the connection. The last one to be dropped closes it, once all is answered.
#[derive(Clone)]
pub(crate) struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    route: Arc<Route>,
    patience: Patience,
}

impl Link {
    /// Does nothing yet, and needs no runtime for that.
    pub(crate) fn new(route: impl Into<Route>, patience: Patience) -> Self {
        let shared = Arc::new(Shared::new(patience.in_flight));
        Self { inner: Arc::new(Inner { shared, route: Arc::new(route.into()), patience }) }
    }

    /// Queues a command. `then` is called once, with the reply or the failure, by the driver; or here
    /// and now if it cannot be queued, so call this with no lock held that `then` takes. It must not
    /// block. Commands sent from within it leave together, as soon as it returns.
    pub(crate) fn send(&self, command: Command, then: Then) {
        let deadline = Instant::now() + self.inner.patience.reply;
        let (reply_cap, replies_before) = (command.reply_cap(), command.replies_before());
        let bytes = command.into_bytes();
        let pending = Pending { bytes, reply_cap, replies_before, deadline, then };
        match self.inner.shared.queue(pending) {
            Ok(next) => self.go_on(next),
            Err((then, failure)) => then(Err(failure)),
        }
    }

    /// Sends a command and waits for its reply.
    pub(crate) async fn ask(&self, command: Command) -> Result<Reply, Failure> {
        let (then, reply) = promised();
        self.send(command, then);
        reply.await
    }

    /// Proves the connection now, making it if there is none, and tells what the server is. Tries even
    /// right after an attempt has failed.
    pub(crate) async fn open(&self) -> Result<Option<ServerInfo>, Failure> {
        let (sender, receiver) = oneshot::channel();
        let next = self.inner.shared.want_open(Box::new(|info| drop(sender.send(info))))?;
        self.go_on(next);
        let ended = || Failure::Unreachable("the driver of the connection has ended".to_owned());
        let info = receiver.await.unwrap_or_else(|_| Err(ended()))?;
        // It may have been made long ago.
        self.ask(Command::new("PING")).await?;
        Ok(info)
    }

    /// Lets the next connection be a new one: the server of this one is not the right one any more. What is
    /// under way is answered first.
    pub(crate) fn leave(&self) {
        if let Some(driver) = self.inner.shared.leave_server() {
            driver.wake();
        }
    }

    fn go_on(&self, next: Next) {
        match next {
            Next::Nothing => {}
            Next::Wake(driver) => driver.wake(),
            // If that runtime is ending it drops the driver, which tells all who wait.
            Next::Spawn(runtime) => {
                let Inner { shared, route, patience } = &*self.inner;
                let driver = Driver::new(Arc::clone(shared), Arc::clone(route), *patience);
                drop(runtime.spawn(driver));
            }
        }
    }
}

/// Whom to tell, and who waits until it is told.
pub(crate) fn promised() -> (Then, impl Future<Output = Result<Reply, Failure>>) {
    let (sender, receiver) = oneshot::channel();
    let reply = async {
        receiver.await.unwrap_or_else(|_| Err(Failure::Lost("its driver has ended".to_owned())))
    };
    (Box::new(|reply| drop(sender.send(reply))), reply)
}

/// As messages name its server.
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
        self.shared.close();
    }
}
