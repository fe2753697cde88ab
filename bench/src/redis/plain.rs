//! Asking as it is usually done: one call a decision, by the client library that most use.

use std::sync::{Arc, Mutex, PoisonError};

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, Script, cmd};
use tokio::sync::Semaphore;

use super::asker::Answer;
use super::limits::{Limits, PERIOD};
use super::task::{PATIENCE, Task};
use crate::Outcome;

/// How many connections a pool has.
pub(super) const CONNECTIONS: usize = 32;

/// A token bucket in one key, by the server's clock.
const BUCKET: &str = include_str!("bucket.lua");

/// What the callers of one connection share.
#[derive(Clone)]
pub(super) struct Multiplexed {
    connection: MultiplexedConnection,
    bucket: Bucket,
}

/// What the callers of a pool share: whoever asks takes a connection, or waits for one.
#[derive(Clone)]
pub(super) struct Pool {
    idle: Arc<Mutex<Vec<MultiplexedConnection>>>,
    places: Arc<Semaphore>,
    bucket: Bucket,
}

/// What the callers of the native module share.
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

    pub(super) async fn ask(&mut self, key: &str) -> Outcome<Answer> {
        self.bucket.ask(key, &mut self.connection).await
    }
}

impl Pool {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            idle.push(connection(task).await?);
        }
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        Ok(Self { idle: Arc::new(Mutex::new(idle)), places, bucket: Bucket::of(task)? })
    }

    pub(super) async fn ask(&mut self, key: &str) -> Outcome<Answer> {
        let _place = self.places.acquire().await?;
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = idle().pop().ok_or("more places than connections")?;
        let answer = self.bucket.ask(key, &mut connection).await;
        idle().push(connection);
        answer
    }
}

impl Cell {
    pub(super) async fn connect(task: &Task) -> Outcome<Self> {
        only_buckets(task)?;
        Ok(Self { connection: connection(task).await?, burst: task.ask.burst })
    }

    pub(super) async fn ask(&mut self, key: &str) -> Outcome<Answer> {
        let mut throttle = cmd("CL.THROTTLE");
        // It lets one more pass than the burst it is told.
        throttle.arg(named("cell:", key)).arg(self.burst - 1).arg(1).arg(PERIOD.as_secs());
        let (limited, _limit, remaining, _retry, _reset): (u8, u64, u64, i64, i64) =
            throttle.query_async(&mut self.connection).await?;
        Ok(Answer { is_allowed: limited == 0, remaining })
    }
}

impl Bucket {
    fn of(task: &Task) -> Outcome<Self> {
        only_buckets(task)?;
        Ok(Self { script: Arc::new(Script::new(BUCKET)), burst: task.ask.burst })
    }

    /// By the script's hash; by its text where the server does not know it.
    async fn ask(&self, key: &str, connection: &mut MultiplexedConnection) -> Outcome<Answer> {
        let mut call = self.script.key(named("rate:", key));
        call.arg(u64::try_from(PERIOD.as_micros())?).arg(self.burst).arg(1);
        let (wait, remaining, _reset): (u64, u64, u64) = call.invoke_async(connection).await?;
        Ok(Answer { is_allowed: wait == 0, remaining })
    }
}

/// Without the library's delay of small packets, and with room for every caller to queue at once: the
/// best it can do.
async fn connection(task: &Task) -> Outcome<MultiplexedConnection> {
    let at_once = TcpSettings::default().set_nodelay(true);
    let client = Client::open(task.url.as_str().into_connection_info()?.set_tcp_settings(at_once))?;
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(Some(PATIENCE))
        .set_pipeline_buffer_size(task.callers as usize);
    Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
}

fn only_buckets(task: &Task) -> Outcome<()> {
    match task.ask.limits {
        Limits::TokenBucket => Ok(()),
        limits => Err(format!("only tollgate is asked about {}", limits.name()).into()),
    }
}

fn named(prefix: &str, key: &str) -> String {
    [prefix, key].concat()
}
