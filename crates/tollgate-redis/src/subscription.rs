//! A subscription to one channel on a separate connection.
//!
//! Listeners also act on silence, so a connection that may be dead is reported as lost immediately. A PING
//! every second detects it.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tollgate::jittered;

use crate::connection::{Connection, Route};
use crate::link::LinkLimits;
use crate::resp::{Command, REPLY_CAP, Reply};

mod shared;
#[cfg(test)]
mod tests;

pub(crate) use shared::SharedSubscription;

const PING_INTERVAL: Duration = Duration::from_secs(1);

/// Delay before the first reconnect attempt. It doubles with each attempt up to the maximum.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Receives the events of a channel. Must not block.
pub(crate) trait Listener: Send + Sync {
    /// All messages from now on will be received.
    fn subscribed(&self);
    fn message(&self, payload: &[u8]);
    /// Messages may be missed from now on, or since a moment ago.
    fn lost(&self);
}

/// A subscription that ends when dropped, with a last `lost` event.
pub(crate) struct Subscription {
    task: Option<AbortHandle>,
}

impl Subscription {
    /// Subscribes in the background. Without a runtime, it never subscribes.
    pub(crate) fn start(
        route: impl Into<Route>,
        limits: LinkLimits,
        channel: String,
        listener: Arc<dyn Listener>,
    ) -> Self {
        let task = SubscriptionTask { route: route.into(), limits, channel, listener };
        let runtime = Handle::try_current().ok();
        Self { task: runtime.map(|runtime| runtime.spawn(task.run()).abort_handle()) }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

struct SubscriptionTask {
    route: Route,
    limits: LinkLimits,
    channel: String,
    listener: Arc<dyn Listener>,
}

/// Sends `subscribed` when created and `lost` when dropped, for whatever reason.
struct SubscribedGuard<'a>(&'a dyn Listener);

impl<'a> SubscribedGuard<'a> {
    fn new(listener: &'a dyn Listener) -> Self {
        listener.subscribed();
        Self(listener)
    }
}

impl Drop for SubscribedGuard<'_> {
    fn drop(&mut self) {
        self.0.lost();
    }
}

impl SubscriptionTask {
    async fn run(self) {
        let mut delay = FIRST_DELAY;
        loop {
            if let Some(connection) = self.subscribe().await {
                self.listen(connection).await;
                delay = FIRST_DELAY;
            }
            sleep(jittered(delay)).await;
            delay = MAX_DELAY.min(delay * 2);
        }
    }

    async fn subscribe(&self) -> Option<Connection> {
        let connect_timeout = self.limits.connect_timeout;
        let mut connection = self.route.connect(connect_timeout).await.ok()?;
        let command = Command::new("SUBSCRIBE").arg(&self.channel);
        let subscribed = async {
            connection.write([command]).await.ok()?;
            connection.read(REPLY_CAP).await.ok()
        };
        let reply = timeout(connect_timeout, subscribed).await.ok()??;
        matches!(event(&reply), Some(Event::Subscribed)).then_some(connection)
    }

    /// Forwards messages until the connection fails or a PING gets no reply.
    async fn listen(&self, mut connection: Connection) {
        let guard = SubscribedGuard::new(&*self.listener);
        let reply_timeout = self.limits.reply_timeout;
        let mut ping_at = Instant::now() + PING_INTERVAL;
        let mut pong_deadline = None;
        loop {
            match timeout_at(pong_deadline.unwrap_or(ping_at), connection.read(REPLY_CAP)).await {
                Ok(Ok(reply)) => match event(&reply) {
                    Some(Event::Message(payload)) => guard.0.message(payload),
                    Some(Event::Pong) => pong_deadline = None,
                    Some(Event::Subscribed) | None => return,
                },
                Ok(Err(_)) => return,
                Err(_) if pong_deadline.is_some() => return,
                Err(_) => {
                    let ping = connection.write([Command::new("PING")]);
                    let Ok(Ok(())) = timeout(reply_timeout, ping).await else { return };
                    let now = Instant::now();
                    (ping_at, pong_deadline) = (now + PING_INTERVAL, Some(now + reply_timeout));
                }
            }
        }
    }
}

/// An event on a subscribed connection.
enum Event<'a> {
    Subscribed,
    Message(&'a [u8]),
    Pong,
}

fn event(reply: &Reply) -> Option<Event<'_>> {
    let Reply::Array(parts) = reply else { return None };
    match parts.as_slice() {
        [Reply::Bulk(kind), _, Reply::Bulk(payload)] if kind == b"message" => {
            Some(Event::Message(payload))
        }
        [Reply::Bulk(kind), ..] if kind == b"subscribe" => Some(Event::Subscribed),
        [Reply::Bulk(kind), ..] if kind == b"pong" => Some(Event::Pong),
        _ => None,
    }
}
