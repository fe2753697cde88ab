//! Limiters over the runtime's clock and over a Redis server.

use std::sync::Arc;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::Instant;
use tollgate::policy::NamedLimits;
use tollgate::{Clock, Limit, MemoryStore, Quota, Timestamp};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::MAX_WAIT;
use tollgate_tower::outbound::{AcquireError, Acquired, NamedLimiter};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Resolution of the runtime's timers, by which they may fire late.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// The runtime's paused clock, which advances to the next timer when all tasks wait.
#[derive(Debug, Clone)]
pub(crate) struct RuntimeClock(Instant);

impl RuntimeClock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH + Duration::from_secs(86_400) + self.0.elapsed()
    }
}

pub(crate) type Memory = Arc<MemoryStore<RuntimeClock>>;

pub(crate) fn memory() -> Memory {
    Arc::new(MemoryStore::builder().clock(RuntimeClock::new()).build())
}

/// A sliding window of this count per second.
pub(crate) fn per_second(count: u64) -> NamedLimits {
    per(count, SECOND)
}

/// A sliding window of this count per window.
pub(crate) fn per(count: u64, window: Duration) -> NamedLimits {
    let limit = Limit::sliding_window(Quota::new(count, window)).unwrap();
    NamedLimits::new("igdb:api", limit).unwrap()
}

/// A limiter over memory with the runtime's clock.
pub(crate) fn limiter(limits: NamedLimits) -> NamedLimiter<Memory> {
    NamedLimiter::new(memory(), limits)
}

/// A window that outlasts every test.
pub(crate) fn per_century(count: u64) -> NamedLimits {
    per(count, Duration::from_secs(36_525 * 86_400))
}

/// One server shared by all tests, which use different key prefixes.
pub(crate) fn redis() -> &'static Server {
    static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start(Flavor::Redis));
    &SERVER
}

/// A store with a time-out that no test reaches.
pub(crate) fn redis_store(url: &str, prefix: &str) -> RedisStore {
    let builder = RedisStore::builder(url.parse().unwrap()).timeout(2 * MAX_WAIT);
    builder.prefix(prefix).unwrap().build()
}

/// Returns the key and the retry time of a refusal.
pub(crate) fn refusal(result: Result<Acquired, AcquireError>) -> (String, Option<Duration>) {
    match result {
        Err(AcquireError::Exceeded(refused)) => (refused.key, refused.retry_after),
        other => panic!("not refused: {other:?}"),
    }
}
