//! A connection of its own on which a channel is listened to.
//!
//! Whoever listens acts on silence as much as on messages: so a connection that may be dead is told as
//! lost at once, and it is asked every second whether it lives.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tollgate::jittered;

use crate::connection::Connection;
use crate::link::Patience;
use crate::resp::{Command, REPLY_CAP, Reply};
use crate::route::Route;

#[cfg(test)]
mod tests;

/// How often the server is asked whether it is there.
const PING: Duration = Duration::from_secs(1);

/// How long until the first attempt after a connection was lost, and between later ones.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// Told what happens on a channel. Must not block.
pub(crate) trait Listener: Send + Sync {
    /// From now on every message comes.
    fn live(&self);
    fn message(&self, payload: &[u8]);
    /// From now on, or since a moment ago, messages may be missed.
    fn lost(&self);
}

/// Listens until dropped, and is then lost.
pub(crate) struct Subscription {
    task: Option<AbortHandle>,
}

impl Subscription {
    /// Listens in the background. Without a runtime to do so in it never comes to live.
    pub(crate) fn start(
        route: impl Into<Route>,
        patience: Patience,
        channel: String,
        listener: Arc<dyn Listener>,
    ) -> Self {
        let follower = Follower { route: route.into(), patience, channel, listener };
        let runtime = Handle::try_current().ok();
        Self { task: runtime.map(|runtime| runtime.spawn(follower.follow()).abort_handle()) }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

struct Follower {
    route: Route,
    patience: Patience,
    channel: String,
    listener: Arc<dyn Listener>,
}

/// While it is there the listener is live, however it comes to an end.
struct Live<'a>(&'a dyn Listener);

impl<'a> Live<'a> {
    fn begin(listener: &'a dyn Listener) -> Self {
        listener.live();
        Self(listener)
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.0.lost();
    }
}

impl Follower {
    async fn follow(self) {
        let mut delay = FIRST_DELAY;
        loop {
            if let Some(connection) = self.subscribe().await {
                self.listen(connection).await;
                delay = FIRST_DELAY;
            }
            sleep(jittered(delay)).await;
            delay = LONGEST_DELAY.min(delay * 2);
        }
    }

    async fn subscribe(&self) -> Option<Connection> {
        let mut connection = self.route.connect(self.patience.connect).await.ok()?;
        let command = Command::new("SUBSCRIBE").arg(&self.channel);
        let subscribed = async {
            connection.write([command]).await.ok()?;
            connection.read(REPLY_CAP).await.ok()
        };
        let reply = timeout(self.patience.connect, subscribed).await.ok()??;
        matches!(event(&reply), Some(Event::Subscribed)).then_some(connection)
    }

    /// Passes messages on until the connection is dead, or does not say that it is not.
    async fn listen(&self, mut connection: Connection) {
        let live = Live::begin(&*self.listener);
        let mut ping_at = Instant::now() + PING;
        let mut pong_by = None;
        loop {
            match timeout_at(pong_by.unwrap_or(ping_at), connection.read(REPLY_CAP)).await {
                Ok(Ok(reply)) => match event(&reply) {
                    Some(Event::Message(payload)) => live.0.message(payload),
                    Some(Event::Pong) => pong_by = None,
                    Some(Event::Subscribed) | None => return,
                },
                Ok(Err(_)) => return,
                Err(_) if pong_by.is_some() => return,
                Err(_) => {
                    let ping = connection.write([Command::new("PING")]);
                    let Ok(Ok(())) = timeout(self.patience.reply, ping).await else { return };
                    let now = Instant::now();
                    (ping_at, pong_by) = (now + PING, Some(now + self.patience.reply));
                }
            }
        }
    }
}

/// What comes on a connection that listens.
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
