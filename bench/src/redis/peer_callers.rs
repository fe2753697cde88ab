//! Decisions through the common client library: one call per decision.

use std::sync::{Arc, Mutex, PoisonError};

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, Script, cmd};
use tokio::sync::Semaphore;

use super::caller::Reply;
use super::limits::{Limits, PERIOD};
use super::task::{REPLY_TIMEOUT, Task};
use crate::Outcome;

/// Number of connections in the pool.
pub(super) const CONNECTIONS: usize = 32;

/// Script of a token bucket in one key, with the server's clock.
const BUCKET: &str = include_str!("bucket.lua");

/// Script calls over one shared connection.
#[derive(Clone)]
pub(super) struct Multiplexed {
    connection: MultiplexedConnection,
    bucket: Bucket,
}

/// Script calls over a pool. A caller takes an idle connection, or waits for one.
#[derive(Clone)]
pub(super) struct Pool {
    idle: Arc<Mutex<Vec<MultiplexedConnection>>>,
    permits: Arc<Semaphore>,
    bucket: Bucket,
}

/// `CL.THROTTLE` of redis-cell over one shared connection.
#[derive(Clone)]
pub(super) struct Cell {
    connection: MultiplexedConnection,
    burst: u32,
}

#[derive(Clone)]
struct Bucket {
    script: Arc<Script>,
    burst: u32,
}

impl Multiplexed {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        Ok(Self { connection: connection(task).await?, bucket: Bucket::of(task)? })
    }

    pub(super) async fn decide(&mut self, key: &str) -> Outcome<Reply> {
        self.bucket.decide(key, &mut self.connection).await
    }
}

impl Pool {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            idle.push(connection(task).await?);
        }
        let permits = Arc::new(Semaphore::new(CONNECTIONS));
        Ok(Self { idle: Arc::new(Mutex::new(idle)), permits, bucket: Bucket::of(task)? })
    }

    pub(super) async fn decide(&mut self, key: &str) -> Outcome<Reply> {
        let _permit = self.permits.acquire().await?;
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = idle().pop().ok_or("the pool has fewer connections than permits")?;
        let reply = self.bucket.decide(key, &mut connection).await;
        idle().push(connection);
        reply
    }
}

impl Cell {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        ensure_token_bucket(task)?;
        Ok(Self { connection: connection(task).await?, burst: task.requests.burst })
    }

    pub(super) async fn decide(&mut self, key: &str) -> Outcome<Reply> {
        let mut throttle = cmd("CL.THROTTLE");
        // redis-cell admits one more request than its burst argument.
        throttle.arg(with_prefix("cell:", key)).arg(self.burst - 1).arg(1).arg(PERIOD.as_secs());
        let (limited, _limit, remaining, _retry, _reset): (u8, u64, u64, i64, i64) =
            throttle.query_async(&mut self.connection).await?;
        Ok(Reply { is_allowed: limited == 0, remaining })
    }
}

impl Bucket {
    fn of(task: &Task) -> Outcome<Self> {
        ensure_token_bucket(task)?;
        Ok(Self { script: Arc::new(Script::new(BUCKET)), burst: task.requests.burst })
    }

    /// Calls the script by its hash; loads it first if the server does not have it.
    async fn decide(&self, key: &str, connection: &mut MultiplexedConnection) -> Outcome<Reply> {
        let mut call = self.script.key(with_prefix("rate:", key));
        call.arg(u64::try_from(PERIOD.as_micros())?).arg(self.burst).arg(1);
        let (wait, remaining, _reset): (u64, u64, u64) = call.invoke_async(connection).await?;
        Ok(Reply { is_allowed: wait == 0, remaining })
    }
}

/// Connects with `TCP_NODELAY` and a queue for all callers, the fastest configuration of the
/// library.
async fn connection(task: &Task) -> Outcome<MultiplexedConnection> {
    let no_delay = TcpSettings::default().set_nodelay(true);
    let client =
        Client::open(task.url.as_str().into_connection_info()?.set_tcp_settings(no_delay))?;
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(Some(REPLY_TIMEOUT))
        .set_pipeline_buffer_size(task.callers as usize);
    Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
}

fn ensure_token_bucket(task: &Task) -> Outcome<()> {
    match task.requests.limits {
        Limits::TokenBucket => Ok(()),
        limits => Err(format!("{} is only supported with tollgate", limits.name()).into()),
    }
}

fn with_prefix(prefix: &str, key: &str) -> String {
    [prefix, key].concat()
}
