//! Redis Sentinel: sentinels know the current primary.
//!
//! Every new connection queries the sentinels for the primary. A connection ends when it fails, when its server
//! turns out to be a replica, and when a sentinel announces another primary. So the store follows failovers.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::timeout;

use crate::address::HostPort;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::link::{Link, LinkLimits};
use crate::resp::{Command, REPLY_CAP, Reply};
use crate::route::Route;
use crate::subscription::{Listener, Subscription};
use crate::target::{Endpoint, Target};

/// The channel on which sentinels announce a new primary.
const SWITCH_CHANNEL: &str = "+switch-master";

/// Sentinels and the name of the primary that they monitor. Displayed as in error messages.
#[derive(Debug)]
pub(crate) struct Sentinels {
    sentinels: Vec<Target>,
    master: String,
    /// The login, database and TLS settings of the primary. Its host and port are unused.
    primary: Target,
}

impl Sentinels {
    /// `primary` supplies everything but the host and port of the primary.
    pub(crate) const fn new(sentinels: Vec<Target>, master: String, primary: Target) -> Self {
        Self { sentinels, master, primary }
    }

    /// Connects to the primary that the first reachable sentinel names.
    pub(crate) async fn connect(&self, connect_timeout: Duration) -> Result<Connection, Failure> {
        let mut last_failure = Failure::Unreachable("the address has no sentinel".to_owned());
        for sentinel in &self.sentinels {
            let host_port = match self.primary_of(sentinel, connect_timeout).await {
                Ok(host_port) => host_port,
                Err(failure) => {
                    last_failure = failure;
                    continue;
                }
            };
            match self.connect_primary(host_port, connect_timeout).await {
                Ok(connection) => return Ok(connection),
                Err(failure) => last_failure = failure,
            }
        }
        Err(last_failure)
    }

    /// Queries a sentinel for the host and port of the primary.
    async fn primary_of(
        &self,
        sentinel: &Target,
        connect_timeout: Duration,
    ) -> Result<HostPort, Failure> {
        let unreachable = |reason: String| {
            Failure::Unreachable(format!("the sentinel at {} {reason}", sentinel.endpoint))
        };
        let mut connection = Connection::open(sentinel, connect_timeout).await?;
        let command = Command::new("SENTINEL").arg("get-master-addr-by-name").arg(&self.master);
        match exchange(&mut connection, command, connect_timeout).await.map_err(unreachable)? {
            Reply::Array(parts) => parse_host_port(&parts),
            Reply::Null => {
                return Err(unreachable(format!("monitors no primary named {:?}", self.master)));
            }
            _ => None,
        }
        .ok_or_else(|| unreachable("does not reply like a sentinel".to_owned()))
    }

    async fn connect_primary(
        &self,
        host_port: HostPort,
        connect_timeout: Duration,
    ) -> Result<Connection, Failure> {
        let endpoint = match &self.primary.endpoint {
            Endpoint::Tls(_, tls) => Endpoint::Tls(host_port, Arc::clone(tls)),
            Endpoint::Tcp(_) | Endpoint::Unix(_) => Endpoint::Tcp(host_port),
        };
        let target = Target { endpoint, ..self.primary.clone() };
        let unreachable =
            |reason: String| Failure::Unreachable(format!("Redis at {} {reason}", target.endpoint));
        let mut connection = Connection::open(&target, connect_timeout).await?;
        // The sentinel may be outdated, and a replica would refuse every take.
        let role = exchange(&mut connection, Command::new("ROLE"), connect_timeout).await;
        match role.map_err(unreachable)? {
            Reply::Array(parts) if is_replica(&parts) => {
                Err(unreachable("is a replica, but a sentinel names it as the primary".to_owned()))
            }
            _ => Ok(connection),
        }
    }
}

/// Reconnects a link when a sentinel announces another primary.
pub(crate) struct FailoverWatcher {
    sentinels: Arc<Sentinels>,
    limits: LinkLimits,
    subscriptions: OnceLock<Vec<Subscription>>,
}

impl FailoverWatcher {
    pub(crate) const fn new(sentinels: Arc<Sentinels>, limits: LinkLimits) -> Self {
        Self { sentinels, limits, subscriptions: OnceLock::new() }
    }

    /// Subscribes to all sentinels, unless that is done. Needs a runtime.
    pub(crate) fn start(&self, link: &Link) {
        let subscribe = |sentinel: &Target| {
            let master = self.sentinels.master.clone();
            let listener = SwitchListener { master, link: link.clone() };
            let (route, channel) = (Route::Fixed(sentinel.clone()), SWITCH_CHANNEL.to_owned());
            Subscription::start(route, self.limits, channel, Arc::new(listener))
        };
        let sentinels = &self.sentinels.sentinels;
        self.subscriptions.get_or_init(|| sentinels.iter().map(subscribe).collect());
    }
}

impl fmt::Debug for FailoverWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailoverWatcher")
            .field("sentinels", &self.sentinels)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (by sentinel)", self.master)
    }
}

/// Listens to one sentinel.
struct SwitchListener {
    master: String,
    link: Link,
}

impl Listener for SwitchListener {
    fn subscribed(&self) {}

    fn message(&self, payload: &[u8]) {
        let name = payload.split(|byte| *byte == b' ').next();
        if name == Some(self.master.as_bytes()) {
            self.link.reconnect();
        }
    }

    fn lost(&self) {}
}

async fn exchange(
    connection: &mut Connection,
    command: Command,
    reply_timeout: Duration,
) -> Result<Reply, String> {
    let exchanged = async {
        connection.write([command]).await.map_err(|error| error.to_string())?;
        connection.read(REPLY_CAP).await.map_err(|error| error.to_string())
    };
    timeout(reply_timeout, exchanged).await.unwrap_or_else(|_| Err("does not reply".to_owned()))
}

fn parse_host_port(parts: &[Reply]) -> Option<HostPort> {
    let [Reply::Bulk(host), Reply::Bulk(port)] = parts else { return None };
    let host = String::from_utf8(host.clone()).ok()?;
    Some(HostPort { host, port: std::str::from_utf8(port).ok()?.parse().ok()? })
}

fn is_replica(parts: &[Reply]) -> bool {
    matches!(parts.first(), Some(Reply::Bulk(role)) if role == b"slave")
}
