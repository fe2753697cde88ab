//! The limiters whose growth is measured, as far as other benchmarks do not have them.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use governor::DefaultKeyedRateLimiter;
use tollgate::{Facts, Limit, LocalLimiter, MemoryStore, Policy, Quota};

use crate::limiter::{BURST, Limiter, governor, limit};
use crate::{Outcome, timed_run::TimedLimiter};

pub(super) const TOLLGATE: &str = "tollgate";
pub(super) const GOVERNOR: &str = "governor";
pub(super) const GOVERNOR_SEQUENCE: &str = "governor, one limiter per limit (not atomic)";
pub(super) const THROTTLECRAB: &str = "throttlecrab in a Mutex";

/// A limiter and its name.
pub(super) type Named = (&'static str, Box<dyn TimedLimiter>);

/// Creates tollgate with room for this many keys, and governor.
pub(super) fn for_keys(keys: u32) -> Outcome<Vec<Named>> {
    let room = usize::try_from(keys)?.max(tollgate::DEFAULT_MAX_KEYS);
    let tollgate = LocalLimiter::builder().limit(limit()?).max_keys(room).build()?;
    Ok(vec![(TOLLGATE, Box::new(tollgate)), (GOVERNOR, Box::new(governor()?))])
}

/// Creates limiters with this many limits per key.
pub(super) fn for_limits(limits: u32) -> Outcome<Vec<Named>> {
    let mut tollgate = LocalLimiter::builder();
    for nth in 0..limits {
        // A different period for each, as in real plans.
        let quota = Quota::new(1, Duration::from_secs(60 + u64::from(nth)));
        tollgate = tollgate.limit(Limit::token_bucket(quota.burst(u64::from(BURST)))?);
    }
    let sequence = (0..limits).map(|_| governor()).collect::<Outcome<_>>()?;
    Ok(vec![
        (TOLLGATE, Box::new(tollgate.build()?)),
        (GOVERNOR_SEQUENCE, Box::new(Sequence(sequence))),
    ])
}

/// Creates a limiter with a policy of this many rules, each with its own path.
pub(super) fn for_rules(rules: u32) -> Outcome<Vec<Named>> {
    let mut text = "version: 1\nrules:\n".to_owned();
    for rule in 0..rules {
        text.push_str(&format!(
            "  - {{ name: r{rule}, match: {{ path: {} }}, per: [client], \
             limits: [{{ rate: 1/60s, burst: {BURST}, algorithm: token_bucket }}] }}\n",
            path(rule, "**"),
        ));
    }
    let policy = Policy::from_yaml("growth", &text, Policy::builtin_limit())?;
    let limiter = tollgate::Limiter::new(MemoryStore::new(), policy);
    Ok(vec![(TOLLGATE, Box::new(ByPolicy(limiter)))])
}

/// The paths of requests, one per rule.
pub(super) fn paths(rules: u32) -> Vec<String> {
    (0..rules).map(|rule| path(rule, "item")).collect()
}

fn path(rule: u32, rest: &str) -> String {
    format!("/p{rule:08}/{rest}")
}

/// Several governor limiters, checked one after the other: what passed before a refusal stays taken.
struct Sequence(Vec<DefaultKeyedRateLimiter<String>>);

impl Limiter for Sequence {
    #[inline]
    fn admit(&self, key: &String) -> bool {
        self.0.iter().all(|limiter| limiter.check_key(key).is_ok())
    }
}

/// A limiter with a policy, for requests of one client. The key of a decision is its path.
struct ByPolicy(tollgate::Limiter<MemoryStore>);

impl Limiter for ByPolicy {
    #[inline]
    fn admit(&self, path: &String) -> bool {
        let Ok(facts) = Facts::of([("client", "c1"), ("path", path.as_str())]) else {
            return false;
        };
        let call = pin!(self.0.check(&facts).into_future());
        // The memory store decides at once.
        match call.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(decision)) => decision.is_allowed(),
            Poll::Ready(Err(_)) | Poll::Pending => false,
        }
    }
}
