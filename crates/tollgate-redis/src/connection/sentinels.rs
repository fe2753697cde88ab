//! Redis Sentinel: sentinels know the current primary. Every new connection queries them for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::{Connection, Endpoint, Target};
use crate::address::HostPort;
use crate::failure::{Failure, explain, is_temporary};
use crate::resp::{Command, REPLY_CAP, Reply};

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

    /// Returns the sentinels.
    pub(crate) fn targets(&self) -> &[Target] {
        &self.sentinels
    }

    /// Returns the name of the primary.
    pub(crate) fn master(&self) -> &str {
        &self.master
    }

    /// Connects to the primary that the first reachable sentinel names.
    pub(crate) async fn connect(&self, connect_timeout: Duration) -> Result<Connection, Failure> {
        let mut last_failure = Failure::Unreachable("the address has no sentinel".to_owned());
        for sentinel in &self.sentinels {
            let host_port = match self.primary_of(sentinel, connect_timeout).await {
                Ok(host_port) => host_port,
                Err(failure) => {
                    last_failure = last_failure.then(failure);
                    continue;
                }
            };
            match self.connect_primary(host_port, connect_timeout).await {
                Ok(connection) => return Ok(connection),
                Err(failure) => last_failure = last_failure.then(failure),
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
        let describe = |reason: String| format!("the sentinel at {} {reason}", sentinel.endpoint);
        let unreachable = |reason| Failure::Unreachable(describe(reason));
        let misconfigured = |reason| Failure::Misconfigured(describe(reason));
        let mut connection = Connection::open(sentinel, connect_timeout).await?;
        let command = Command::new("SENTINEL").arg("get-master-addr-by-name").arg(&self.master);
        match exchange(&mut connection, command, connect_timeout).await.map_err(unreachable)? {
            Reply::Array(parts) => parse_host_port(&parts),
            Reply::Null => {
                return Err(misconfigured(format!("monitors no primary named {:?}", self.master)));
            }
            Reply::Error(error) if is_temporary(&error) => {
                return Err(unreachable(explain(&error)));
            }
            _ => None,
        }
        .ok_or_else(|| misconfigured("does not reply like a sentinel".to_owned()))
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

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (by sentinel)", self.master)
    }
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
