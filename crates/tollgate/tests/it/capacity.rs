//! Capacity of the memory store: it is bounded, and it drops only fresh keys.

use std::time::Duration;

use tollgate::{
    AtCap, Key, Limit, LocalLimiter, ManualClock, MemoryStore, Plan, Quota, Subject, Take, Verdict,
};

fn limiter(max_keys: usize, at_cap: AtCap, clock: &ManualClock) -> LocalLimiter<ManualClock> {
    let limit = Limit::token_bucket(Quota::per_minute(2)).unwrap();
    let builder = LocalLimiter::builder().limit(limit).max_keys(max_keys).at_cap(at_cap);
    builder.clock(clock.clone()).build().unwrap()
}

#[test]
fn flood_of_new_keys_resets_no_key() {
    let clock = ManualClock::new();
    let limiter = limiter(1000, AtCap::Allow, &clock);
    for _ in 0..3 {
        let _ = limiter.take("victim");
    }
    for n in 0..50_000 {
        let _ = limiter.take(&format!("flood-{n}"));
    }
    assert!(!limiter.take("victim").is_allowed());
    let occupancy = limiter.occupancy();
    assert_eq!(occupancy.keys, 1000);
    assert_eq!(occupancy.untracked, 50_000 - 999);
    assert_eq!(occupancy.evicted, 0);
}

#[test]
fn new_key_passes_untracked_when_full() {
    let clock = ManualClock::new();
    let limiter = limiter(10, AtCap::Allow, &clock);
    for n in 0..10 {
        let _ = limiter.take(&format!("old-{n}"));
    }
    for _ in 0..5 {
        let decision = limiter.take("new");
        assert!(decision.is_allowed());
        assert_eq!(decision.remaining(), Some(1));
    }
    assert_eq!(limiter.take_n("new", 3).verdict(), Verdict::Never);
}

#[test]
fn new_key_is_refused_when_full_and_at_cap_is_deny() {
    let clock = ManualClock::new();
    let limiter = limiter(10, AtCap::Deny, &clock);
    for n in 0..10 {
        let _ = limiter.take(&format!("old-{n}"));
    }
    let second = Duration::from_secs(1);
    assert_eq!(limiter.take("new").verdict(), Verdict::Deny { retry_after: second });
    assert!(limiter.take("old-3").is_allowed());
}

#[test]
fn plan_takes_nothing_when_one_key_does_not_fit() {
    let clock = ManualClock::new();
    let limit =
        |name: &str| Limit::token_bucket(Quota::per_minute(2)).unwrap().named(name).unwrap();
    let builder = LocalLimiter::builder().limit(limit("a")).limit(limit("b"));
    let limiter = builder.max_keys(3).at_cap(AtCap::Deny).clock(clock).build().unwrap();
    assert!(limiter.take("first").is_allowed());
    assert!(!limiter.take("second").is_allowed());
    assert_eq!(limiter.occupancy().keys, 2);
    assert_eq!(limiter.stats("second").remaining(), Some(2));
}

#[test]
fn all_operations_report_a_full_store_the_same_way() {
    let one = limiter(2, AtCap::Deny, &ManualClock::new());
    let limit =
        |name: &str| Limit::token_bucket(Quota::per_minute(2)).unwrap().named(name).unwrap();
    let builder = LocalLimiter::builder().limit(limit("a")).limit(limit("b"));
    let two = builder.max_keys(2).at_cap(AtCap::Deny).clock(ManualClock::new()).build().unwrap();
    for limiter in [one, two] {
        let _ = (limiter.take("first"), limiter.take("second"));
        let second = Duration::from_secs(1);
        for decision in [limiter.take("new"), limiter.peek("new")] {
            assert_eq!(decision.verdict(), Verdict::Deny { retry_after: second });
            assert_eq!(
                (decision.remaining(), decision.reset_after()),
                (Some(2), Some(Duration::ZERO))
            );
        }
        assert_eq!(limiter.take_n("new", 3).verdict(), Verdict::Never);
        assert_eq!(limiter.debit("new", 2, Duration::ZERO).remaining(), Some(2));
        limiter.pause("new", second);
        assert_eq!(limiter.stats("new").remaining(), Some(2));
    }
}

#[test]
fn one_expired_key_makes_room_in_any_shard() {
    let clock = ManualClock::new();
    let limiter = limiter(1, AtCap::Deny, &clock);
    assert!(limiter.take("old").is_allowed());
    clock.advance(Duration::from_secs(3600));
    let attempts = (0..100).take_while(|n| !limiter.take(&format!("new-{n}")).is_allowed()).count();
    assert!(attempts <= 16, "{attempts} new keys did not fit although one key had expired");
}

/// A new key in a plan sweeps its shard. The sweep must not drop other keys of the same plan.
#[test]
fn sweep_never_drops_keys_of_the_same_plan() {
    let clock = ManualClock::new();
    let store = MemoryStore::builder().max_keys(1000).clock(clock.clone()).build();
    let limit = Limit::fixed_window(Quota::per_minute(1)).unwrap();
    let known: Vec<Subject> = (0..40).map(|n| Subject::of([format!("known-{n}")])).collect();
    for round in 0..500 {
        clock.advance(Duration::from_secs(60));
        for subject in &known {
            let new = Subject::of([format!("new-{round}-{subject}")]);
            let take = |subject| Take::new(Key::new(subject, &limit), 1);
            let takes =
                [Take::new(Key::new(subject, &limit), 1), Take::new(Key::new(&new, &limit), 1)];
            assert!(store.take(&Plan::new(takes).unwrap()).is_allowed());
            assert!(
                !store.take(&Plan::new([take(subject)]).unwrap()).is_allowed(),
                "a take was lost"
            );
        }
    }
    clock.advance(Duration::from_secs(60));
    let held = store.occupancy().keys;
    assert_eq!(store.sweep(usize::MAX), held);
}

#[test]
fn expired_keys_make_room() {
    let clock = ManualClock::new();
    let limiter = limiter(1000, AtCap::Deny, &clock);
    for round in 0..20 {
        for n in 0..1000 {
            // A new key sweeps only a few slots, so the first keys of a round may not fit.
            let _ = limiter.take(&format!("{round}-{n}"));
        }
        clock.advance(Duration::from_secs(60));
    }
    let occupancy = limiter.occupancy();
    assert!(occupancy.evicted >= 18_000, "{occupancy:?}");
    assert!(occupancy.untracked <= 1000, "{occupancy:?}");
}

#[test]
fn store_with_zero_max_keys_tracks_nothing() {
    let limiter = limiter(0, AtCap::Allow, &ManualClock::new());
    for _ in 0..5 {
        assert!(limiter.take("anyone").is_allowed());
    }
    limiter.pause("anyone", Duration::from_secs(1));
    assert_eq!(limiter.occupancy().keys, 0);
}

#[test]
fn explicit_sweep_drops_only_expired_keys() {
    let clock = ManualClock::new();
    let limiter = limiter(100_000, AtCap::Allow, &clock);
    for n in 0..5000 {
        let _ = limiter.take(&format!("early-{n}"));
    }
    clock.advance(Duration::from_secs(20));
    for n in 0..5000 {
        let _ = limiter.take(&format!("late-{n}"));
    }
    clock.advance(Duration::from_secs(10));
    assert_eq!(limiter.sweep(usize::MAX), 5000);
    assert_eq!(limiter.occupancy().keys, 5000);
    for n in 0..5000 {
        assert_eq!(limiter.stats(&format!("late-{n}")).remaining(), Some(1));
    }
}
