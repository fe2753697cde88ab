//! The paths of the library, with a clock that stands still and a hash that is the same in every process.

use std::hint::black_box;

use axum::Router;
use axum::routing::get;
use foldhash::fast::FixedState;
use tokio::runtime::Builder;
use tollgate::{Facts, Limiter, LocalLimiter, ManualClock, MemoryStore, Policy};
use tollgate_tower::RateLimitLayer;
use tower_service::Service;

use super::path::GuardedPath;
use super::redis_store;
use crate::keys::{KeyFormat, KeyText};
use crate::layer::candidate::request;
use crate::{Outcome, limiter};

/// Number of keys, or of clients, where there are many.
const KEYS: u32 = 10_000;

const ONE_LIMIT: &str =
    "version: 1\nrules:\n  - { name: api, limits: [100000000/d], algorithm: token_bucket }\n";
const TWO_LIMITS: &str = "version: 1\nrules:\n  - { name: api, match: { path: /api/** }, per: [client], \
                          limits: [100000000/d, 1000000000/w], algorithm: token_bucket }\n";

/// Makes this many decisions on a path.
///
/// # Errors
/// A decision refuses, or the path belongs to a server.
pub fn run(path: GuardedPath, decisions: u32) -> Outcome<()> {
    match path {
        GuardedPath::LocalCheck => local_check(decisions),
        GuardedPath::LocalTake => local_take(decisions),
        GuardedPath::PolicyPlan => policy_plan(decisions),
        GuardedPath::TowerLayer => tower_layer(decisions),
        GuardedPath::RedisTake => redis_store::take(decisions),
        GuardedPath::LeaseTake => redis_store::take_leased(decisions),
        GuardedPath::HttpCheck | GuardedPath::RespThrottle => {
            Err(format!("{path} runs in a server").into())
        }
    }
}

fn local_limiter() -> Outcome<LocalLimiter<ManualClock, FixedState>> {
    let builder = LocalLimiter::builder().limit(limiter::limit()?);
    Ok(builder.clock(ManualClock::new()).hasher(FixedState::default()).build()?)
}

fn store() -> MemoryStore<ManualClock, FixedState> {
    MemoryStore::builder().clock(ManualClock::new()).hasher(FixedState::default()).build()
}

fn ensure_allowed(allowed: bool) -> Outcome<()> {
    if allowed { Ok(()) } else { Err("a decision was refused".into()) }
}

fn local_check(decisions: u32) -> Outcome<()> {
    let limiter = local_limiter()?;
    (0..decisions)
        .try_for_each(|_| ensure_allowed(limiter.check(black_box("user:00001234")).is_allowed()))
}

fn local_take(decisions: u32) -> Outcome<()> {
    let limiter = local_limiter()?;
    let mut text = KeyText::new(KeyFormat::Uuid);
    (0..decisions)
        .try_for_each(|nth| ensure_allowed(limiter.take(text.write(nth % KEYS)).is_allowed()))
}

fn policy_plan(decisions: u32) -> Outcome<()> {
    let policy = Policy::from_yaml("guard", TWO_LIMITS, Policy::builtin_limit())?;
    let limiter = Limiter::new(store(), policy);
    let runtime = Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let mut text = KeyText::new(KeyFormat::User);
        for nth in 0..decisions {
            let client = text.write(nth % KEYS).as_str();
            let facts = Facts::of([("client", client), ("path", "/api/orders")])?;
            ensure_allowed(limiter.check(&facts).await?.is_allowed())?;
        }
        Ok(())
    })
}

fn tower_layer(decisions: u32) -> Outcome<()> {
    let policy = Policy::from_yaml("guard", ONE_LIMIT, Policy::builtin_limit())?;
    let layer = RateLimitLayer::builder(Limiter::new(store(), policy)).build();
    let mut router = Router::new().route("/", get(async || "Hello, world!")).layer(layer);
    let runtime = Builder::new_current_thread().build()?;
    runtime.block_on(async {
        for nth in 0..decisions {
            let response = router.call(request(nth % KEYS)?).await?;
            ensure_allowed(response.status() == 200 && !response.headers().is_empty())?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_library_allow_every_decision() {
        let server = [GuardedPath::HttpCheck, GuardedPath::RespThrottle];
        for path in GuardedPath::ALL.into_iter().filter(|path| !server.contains(path)) {
            run(path, 100).unwrap();
        }
        let error = run(GuardedPath::HttpCheck, 1).unwrap_err().to_string();
        assert_eq!(error, "http_check runs in a server");
    }
}
