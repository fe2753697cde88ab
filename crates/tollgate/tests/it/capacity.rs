//! The memory store is bounded, and what it forgets was worth nothing.

use std::time::Duration;

use tollgate::{AtCap, Limit, LocalLimiter, ManualClock, Quota, Verdict};

fn limiter(max_keys: usize, at_cap: AtCap, clock: &ManualClock) -> LocalLimiter<ManualClock> {
    let limit = Limit::token_bucket(Quota::per_minute(2)).unwrap();
    let builder = LocalLimiter::builder().limit(limit).max_keys(max_keys).at_cap(at_cap);
    builder.clock(clock.clone()).build().unwrap()
}

#[test]
fn a_flood_of_new_keys_resets_nobody() {
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
fn at_the_cap_a_new_key_passes_untracked() {
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
fn at_the_cap_a_new_key_is_refused_where_so_chosen() {
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
fn a_plan_at_the_cap_takes_nothing_when_one_key_has_no_place() {
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
fn places_come_free_as_keys_expire() {
    let clock = ManualClock::new();
    let limiter = limiter(1000, AtCap::Deny, &clock);
    for round in 0..20 {
        for n in 0..1000 {
            // The sweep looks at a few slots per new key, so the first of a round may find none.
            let _ = limiter.take(&format!("{round}-{n}"));
        }
        clock.advance(Duration::from_secs(60));
    }
    let occupancy = limiter.occupancy();
    assert!(occupancy.evicted >= 18_000, "{occupancy:?}");
    assert!(occupancy.untracked <= 1000, "{occupancy:?}");
}

#[test]
fn a_store_of_no_keys_tracks_nothing() {
    let limiter = limiter(0, AtCap::Allow, &ManualClock::new());
    for _ in 0..5 {
        assert!(limiter.take("anyone").is_allowed());
    }
    limiter.pause("anyone", Duration::from_secs(1));
    assert_eq!(limiter.occupancy().keys, 0);
}

#[test]
fn an_explicit_sweep_drops_only_what_has_expired() {
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
