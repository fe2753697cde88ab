//! A client of IGDB that keeps to the quota of four a second, together with every other process.
//!
//! ```text
//! REDIS_URL=redis://127.0.0.1:6379/0 cargo run -p tollgate-tower --example outbound_igdb -- 5
//! ```
//!
//! Run it twice at once and the two share the quota. Without `REDIS_URL` it is this process's alone.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tollgate::policy::NamedLimits;
use tollgate::{MemoryStore, Store};
use tollgate_redis::{Address, RedisStore};
use tollgate_tower::outbound::{AcquireError, NamedLimiter};

/// How many calls are made unless the command line says.
const CALLS: u64 = 5;
/// A call that waits for its turn can wait for Redis too.
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    run(env::args().nth(1)).await
}

/// Makes so many calls. Exits with 2 if it was told nonsense, with 1 if it could not be done.
pub(crate) async fn run(calls: Option<String>) -> ExitCode {
    let made = match (calls_of(calls), store_of_env()) {
        (Err(reason), _) | (_, Err(reason)) => {
            eprintln!("outbound_igdb: {reason}");
            return ExitCode::from(2);
        }
        (Ok(calls), Ok(Some(redis))) => list_games(&Igdb::new(redis), calls).await,
        (Ok(calls), Ok(None)) => list_games(&Igdb::new(MemoryStore::new()), calls).await,
    };
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            eprintln!("outbound_igdb: {error}{cause}");
            ExitCode::FAILURE
        }
    }
}

fn calls_of(argument: Option<String>) -> Result<u64, String> {
    let Some(text) = argument else { return Ok(CALLS) };
    text.parse().map_err(|_| format!("how many calls? {text:?} is not a whole number"))
}

fn store_of_env() -> Result<Option<RedisStore>, String> {
    if env::var_os("REDIS_URL").is_none() {
        return Ok(None);
    }
    let address = Address::from_env().map_err(|error| format!("REDIS_URL: {error}"))?;
    Ok(Some(RedisStore::builder(address).timeout(PATIENCE).build()))
}

/// Where games are wanted, nobody thinks of limits.
async fn list_games<S: Store + 'static>(igdb: &Igdb<S>, calls: u64) -> Result<(), AcquireError> {
    for id in 1..=calls {
        igdb.game(id).await?;
    }
    Ok(())
}

/// The client. Whatever is asked of it goes through its limiter.
struct Igdb<S> {
    limiter: NamedLimiter<S>,
    began: Instant,
    calls: AtomicU64,
}

impl<S: Store + 'static> Igdb<S> {
    fn new(store: S) -> Self {
        let limiter = NamedLimiter::new(store, NamedLimits::igdb());
        Self { limiter, began: Instant::now(), calls: AtomicU64::new(0) }
    }

    /// The name of a game. A real client would send its request where this one prints.
    async fn game(&self, id: u64) -> Result<String, AcquireError> {
        let acquired = self.limiter.acquire().await?;
        println!(
            "call {} at +{:.3}s waited {:.3}s, {} left",
            self.calls.fetch_add(1, Ordering::Relaxed) + 1,
            self.began.elapsed().as_secs_f64(),
            acquired.waited.as_secs_f64(),
            acquired.remaining,
        );
        Ok(format!("game {id}"))
    }
}
