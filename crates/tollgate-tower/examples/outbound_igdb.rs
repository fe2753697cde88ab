//! An IGDB client that keeps to the quota of 4 calls per second, shared with other processes.
//!
//! ```text
//! REDIS_URL=redis://127.0.0.1:6379/0 cargo run -p tollgate-tower --example outbound_igdb -- 5
//! ```
//!
//! Run it twice at the same time to share the quota. Without `REDIS_URL` the quota is per process.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tollgate::policy::NamedLimits;
use tollgate::{MemoryStore, Store};
use tollgate_redis::{Address, RedisStore};
use tollgate_tower::outbound::{AcquireError, NamedLimiter};

/// Default number of calls.
const DEFAULT_CALLS: u64 = 5;
/// Time-out of Redis calls; generous, because calls may wait for quota anyway.
const REDIS_TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    run(env::args().nth(1)).await
}

/// Makes this many calls. Exits with 2 for invalid input and with 1 if a call fails.
pub(crate) async fn run(calls: Option<String>) -> ExitCode {
    let result = match (parse_calls(calls), store_from_env()) {
        (Err(reason), _) | (_, Err(reason)) => {
            eprintln!("outbound_igdb: {reason}");
            return ExitCode::from(2);
        }
        (Ok(calls), Ok(Some(redis))) => list_games(&Igdb::new(redis), calls).await,
        (Ok(calls), Ok(None)) => list_games(&Igdb::new(MemoryStore::new()), calls).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            eprintln!("outbound_igdb: {error}{cause}");
            ExitCode::FAILURE
        }
    }
}

fn parse_calls(argument: Option<String>) -> Result<u64, String> {
    let Some(text) = argument else { return Ok(DEFAULT_CALLS) };
    text.parse().map_err(|_| format!("invalid number of calls {text:?}: must be a whole number"))
}

fn store_from_env() -> Result<Option<RedisStore>, String> {
    if env::var_os("REDIS_URL").is_none() {
        return Ok(None);
    }
    let address = Address::from_env().map_err(|error| format!("REDIS_URL: {error}"))?;
    Ok(Some(RedisStore::builder(address).timeout(REDIS_TIMEOUT).build()))
}

/// Application code, without rate limiting.
async fn list_games<S: Store + 'static>(igdb: &Igdb<S>, calls: u64) -> Result<(), AcquireError> {
    for id in 1..=calls {
        igdb.game(id).await?;
    }
    Ok(())
}

/// The API client. Every call acquires its limiter first.
struct Igdb<S> {
    limiter: NamedLimiter<S>,
    start: Instant,
    calls: AtomicU64,
}

impl<S: Store + 'static> Igdb<S> {
    fn new(store: S) -> Self {
        let limiter = NamedLimiter::new(store, NamedLimits::igdb());
        Self { limiter, start: Instant::now(), calls: AtomicU64::new(0) }
    }

    /// Returns the name of a game. A real client would send a request instead of printing.
    async fn game(&self, id: u64) -> Result<String, AcquireError> {
        let acquired = self.limiter.acquire().await?;
        println!(
            "call {} at +{:.3}s waited {:.3}s, {} left",
            self.calls.fetch_add(1, Ordering::Relaxed) + 1,
            self.start.elapsed().as_secs_f64(),
            acquired.waited.as_secs_f64(),
            acquired.remaining,
        );
        Ok(format!("game {id}"))
    }
}
