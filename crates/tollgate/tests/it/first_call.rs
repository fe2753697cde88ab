//! The short forms: `Limiter::check` and `KeyedLimiter::check` with owned results.

use std::num::NonZeroU32;
use std::time::Duration;

use tollgate::{
    DynStore, Facts, FallbackStore, HeaderStyle, Inline, KeyedLimiter, Limit, Limiter, ManualClock,
    MemoryStore, OnStoreLoss, OwnedDecision, Policy, Quota, QuotaErrorKind, Refusal, Source,
    StoreErrorKind, Verdict,
};
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_testkit::runtime::block_on;

const POLICY: &str = "
version: 1
rules:
- { name: internal, match: { tier: internal }, unlimited: true }
- { name: jobs, match: { path: /jobs }, limits: [{ concurrency: 1, ttl: 30s }] }
- { name: search, match: { path: /search }, limits: [5/min, 8/h], algorithm: token_bucket }
";

fn policy() -> Policy {
    Policy::from_yaml("policy.yaml", POLICY, Limit::block()).unwrap()
}

fn facts(path: &'static str) -> Facts<'static> {
    Facts::of([("client", "c1"), ("path", path)]).unwrap()
}

fn bucket(count: u64) -> Limit {
    Limit::token_bucket(Quota::try_new(count, Duration::from_secs(60)).unwrap()).unwrap()
}

fn memory(clock: &ManualClock) -> MemoryStore<ManualClock> {
    MemoryStore::builder().clock(clock.clone()).build()
}

#[test]
fn check_returns_an_owned_decision_by_policy() {
    let limiter = Limiter::new(memory(&ManualClock::new()), policy());
    let search = facts("/search");
    let decision = block_on(async { limiter.check(&search).cost(3).await.unwrap() });
    assert!(decision.is_allowed());
    assert_eq!(decision.verdict(), Verdict::Allow);
    assert_eq!((decision.remaining(), decision.retry_after()), (Some(2), None));
    assert_eq!((decision.rule(), decision.limit_name()), ("search", Some("60s")));
    assert_eq!((decision.key(), decision.source()), ("c1", Source::Store));
    let remaining: Vec<u64> = decision.statuses().map(|status| status.remaining()).collect();
    assert_eq!(remaining, [2, 5]);

    let refused = block_on(async { limiter.check(&search).cost(3).await.unwrap() });
    assert!(!refused.is_allowed());
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(12)));
    assert_eq!(refused.limit_name(), Some("60s"));
    let never = block_on(async { limiter.check(&search).cost(6).await.unwrap() });
    assert_eq!((never.verdict(), never.retry_after()), (Verdict::Never, None));
}

#[test]
fn peek_refund_and_reset_have_the_same_form() {
    let limiter = Limiter::new(memory(&ManualClock::new()), policy());
    let search = facts("/search");
    block_on(async {
        assert_eq!(limiter.peek(&search).await.unwrap().remaining(), Some(5));
        assert_eq!(limiter.check(&search).cost(4).await.unwrap().remaining(), Some(1));
        assert_eq!(limiter.refund(&search).cost(2).await.unwrap().remaining(), Some(3));
        assert_eq!(limiter.peek(&search).await.unwrap().remaining(), Some(3));
        limiter.reset(&search).await.unwrap();
        assert_eq!(limiter.peek(&search).await.unwrap().remaining(), Some(5));
    });
}

#[test]
fn unlimited_decisions_name_the_rule_and_no_limit() {
    let limiter = Limiter::new(MemoryStore::new(), policy());
    let internal = Facts::of([("client", "c1"), ("tier", "internal")]).unwrap();
    let decision = block_on(async { limiter.check(&internal).await.unwrap() });
    assert!(decision.is_allowed());
    assert_eq!((decision.rule(), decision.limit_name()), ("internal", None));
    assert_eq!((decision.remaining(), decision.reset_after()), (None, None));
}

#[test]
fn inline_limits_are_checked_by_the_same_call() {
    let limiter = Limiter::new(MemoryStore::new(), policy());
    let inline = Inline::new("", "k", vec![bucket(10)], 1).unwrap();
    let decision = block_on(async { limiter.check(inline).cost(4).await.unwrap() });
    assert_eq!((decision.rule(), decision.key()), ("inline", "k"));
    assert_eq!(decision.remaining(), Some(6));
}

#[test]
fn decisions_carry_the_permit_of_their_slots() {
    let limiter = Limiter::new(memory(&ManualClock::new()), policy());
    let jobs = facts("/jobs");
    block_on(async {
        let decision = limiter.check(&jobs).await.unwrap();
        let permit = decision.permit().expect("a slot was free");
        assert_eq!(decision.expires_at().unwrap().as_micros(), 30_000_000);
        assert!(limiter.check(&jobs).await.unwrap().permit().is_none());
        assert!(limiter.release(permit).await.unwrap());
        assert!(limiter.check(&jobs).await.unwrap().is_allowed());
    });
}

#[test]
fn borrowed_form_writes_the_same_headers_and_refusal() {
    let limiter = KeyedLimiter::new(memory(&ManualClock::new()), bucket(1));
    let (allowed, refused) =
        block_on(async { (limiter.check("k").await.unwrap(), limiter.check("k").await.unwrap()) });
    assert!(Refusal::of(&allowed.as_decision()).is_none());
    let refusal = refused.as_decision();
    assert_eq!(Refusal::of(&refusal).unwrap().retry_after_seconds(), Some(60));
    let mut fields = Vec::new();
    HeaderStyle::Draft6.write(&refusal, |name, value| fields.push(format!("{name}: {value}")));
    assert_eq!(fields, ["ratelimit-limit: 1", "ratelimit-remaining: 0", "ratelimit-reset: 60"]);
}

#[test]
fn keyed_limiter_counts_each_key_alone() {
    let limiter = KeyedLimiter::new(memory(&ManualClock::new()), bucket(2));
    block_on(async {
        assert_eq!(limiter.check("user:1").await.unwrap().remaining(), Some(1));
        assert_eq!(limiter.check(String::from("user:1")).await.unwrap().remaining(), Some(0));
        assert!(!limiter.check("user:1").await.unwrap().is_allowed());
        assert_eq!(limiter.peek("user:2").await.unwrap().remaining(), Some(2));
        assert_eq!(limiter.refund("user:1").await.unwrap().remaining(), Some(1));
        limiter.reset("user:1").await.unwrap();
        let decision = limiter.peek("user:1").await.unwrap();
        assert_eq!((decision.remaining(), decision.key()), (Some(2), "user:1"));
    });
}

#[test]
fn keyed_limits_are_taken_all_or_nothing() {
    let limits = vec![bucket(3), Limit::token_bucket(Quota::per_hour(2)).unwrap()];
    let limiter = KeyedLimiter::with_limits(memory(&ManualClock::new()), limits).unwrap();
    block_on(async {
        assert!(limiter.check("k").cost(2).await.unwrap().is_allowed());
        let refused = limiter.check("k").await.unwrap();
        assert_eq!(refused.limit_name(), Some("3600s"));
        let remaining: Vec<u64> = refused.statuses().map(|status| status.remaining()).collect();
        assert_eq!(remaining, [1, 0], "a refused request debits no limit");
    });
    let none = KeyedLimiter::with_limits(MemoryStore::new(), Vec::new()).unwrap_err();
    assert_eq!(none.kind(), QuotaErrorKind::Limits);
    assert_eq!(none.to_string(), "a keyed limiter needs 1 to 16 limits, not 0");
}

#[test]
fn keyed_slots_are_released_and_renewed_by_permit() {
    let limit = Limit::concurrency(1, Duration::from_secs(10)).unwrap();
    let clock = ManualClock::new();
    let limiter = KeyedLimiter::new(memory(&clock), limit);
    block_on(async {
        let held = limiter.check("k").await.unwrap();
        let permit = held.permit().expect("a slot was free");
        assert!(!limiter.check("k").await.unwrap().is_allowed());
        clock.advance(Duration::from_secs(5));
        let renewed = limiter.renew(permit).await.unwrap();
        assert_eq!(renewed.unwrap().as_micros(), 15_000_000);
        assert!(limiter.release(permit).await.unwrap());
        assert!(limiter.check("k").await.unwrap().is_allowed());
    });
}

#[test]
fn bare_store_failures_are_typed_errors() {
    let store = FaultyStore::new(MemoryStore::new());
    store.set(StoreFault::Unreachable);
    let keyed = KeyedLimiter::new(&store, bucket(1));
    let error = block_on(async { keyed.check("k").await.unwrap_err() });
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let limiter = Limiter::new(&store, policy());
    assert!(block_on(async { limiter.check(facts("/")).await.unwrap_err().is_transient() }));
}

/// Decides while the shared store is lost, with the behaviour set in code.
fn decide_degraded(on_store_loss: Option<OnStoreLoss>) -> [OwnedDecision; 2] {
    let shared = FaultyStore::new(MemoryStore::new());
    shared.set(StoreFault::Unreachable);
    let two = NonZeroU32::new(2).unwrap();
    let store = DynStore::new(FallbackStore::builder(shared).nodes(two).build());
    let mut limiter = Limiter::new(store.clone(), policy());
    let mut keyed = KeyedLimiter::new(store, bucket(10));
    if let Some(on_store_loss) = on_store_loss {
        limiter = limiter.on_store_loss(on_store_loss);
        keyed = keyed.on_store_loss(on_store_loss);
    }
    let search = facts("/search");
    block_on(async { [limiter.check(&search).await.unwrap(), keyed.check("k").await.unwrap()] })
}

#[test]
fn store_loss_behaviour_can_be_set_in_code() {
    for decision in decide_degraded(None) {
        assert!(decision.is_allowed() && decision.is_degraded());
        assert!(decision.deciding().unwrap().share().is_some(), "the node's share by default");
    }
    for decision in decide_degraded(Some(OnStoreLoss::Deny)) {
        assert!(!decision.is_allowed() && decision.is_degraded());
        assert_eq!(decision.source(), Source::Local);
    }
    for decision in decide_degraded(Some(OnStoreLoss::Allow)) {
        assert!(decision.is_allowed() && decision.is_degraded());
    }
}

#[test]
fn decisions_and_calls_can_cross_threads() {
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    let limiter = KeyedLimiter::new(DynStore::new(MemoryStore::new()), bucket(1));
    let decision = block_on(assert_send(IntoFuture::into_future(limiter.check("k")))).unwrap();
    assert!(assert_send(decision.clone()).is_allowed());
    assert_eq!(decision, decision.clone());
}
