//! The paths of the Redis store, on a server that each run starts.

use std::env;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Builder;
use tollgate::{Key, LeaseSize, Limit, Plan, Source, Store, Subject, Take};
use tollgate_redis::RedisStore;

use crate::server::Cores;
use crate::{Outcome, limiter, redis_server};

/// The size of a lease: a new one is requested after 500 decisions.
const LEASE: NonZeroU32 = NonZeroU32::new(1000).unwrap();

/// Longer than any pause of a busy machine: a run fails only if Redis does.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Takes without leases, one call of Redis each.
pub(super) fn take(decisions: u32) -> Outcome<()> {
    run(&limiter::limit()?, decisions, Source::Store)
}

/// Takes that are decided from leases.
pub(super) fn take_leased(decisions: u32) -> Outcome<()> {
    run(&limiter::limit()?.with_lease(LeaseSize::Fixed(LEASE)), decisions, Source::Lease)
}

/// Takes until this many were decided by this source.
fn run(limit: &Limit, decisions: u32, source: Source) -> Outcome<()> {
    let program = env::var_os("TOLLGATE_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
    let server = redis_server::start(&PathBuf::from(program), Cores::Any, |_| ())?;
    let subject = Subject::of(["hot"]);
    let plan = Plan::new([Take::new(Key::new(&subject, limit), 1)])?;
    // One thread, so that no instructions are spent on waking others.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let address = format!("redis://{}", server.address()).parse()?;
        let store = RedisStore::builder(address).timeout(TIMEOUT).build();
        let mut decided = 0;
        while decided < decisions {
            let decision = store.take(&plan).await?;
            if !decision.is_allowed() {
                return Err("a decision was refused".into());
            }
            decided += u32::from(decision.source() == source);
            // A task requests the next lease.
            tokio::task::yield_now().await;
        }
        Outcome::Ok(())
    })?;
    server.stop()
}
