//! Peek, refund, debit, pause, reset, stats.

use tollgate::{Key, Store, Subject};

use super::{Fixture, S, apply_one, at, drain, peek, take, ten_a_minute};
use crate::answer::{Operation, VerdictKind};
use crate::spec::Kind;

/// Repeated peeks change nothing.
pub async fn peek_takes_nothing(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 0);
        let _ = take(fixture, &subject, &limit, 3).await;
        for _ in 0..20 {
            let answer = peek(fixture, &subject, &limit, 7).await;
            assert_eq!((answer.verdict, answer.remaining), (VerdictKind::Allow, 7));
            assert_eq!(peek(fixture, &subject, &limit, 8).await.verdict, VerdictKind::Deny);
        }
    }
}

/// Refunded quota can be taken again, and a full key stays full.
pub async fn refund_never_exceeds_capacity(fixture: &impl Fixture) {
    // Only permits release slots.
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Concurrency) {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 0);
        let _ = take(fixture, &subject, &limit, 10).await;
        let after = apply_one(fixture, &subject, &limit, Operation::Refund { cost: 3 }).await;
        assert_eq!((after.verdict, after.remaining, after.count), (VerdictKind::Allow, 3, 7));
        for cost in [100, u64::MAX, 1] {
            let after = apply_one(fixture, &subject, &limit, Operation::Refund { cost }).await;
            assert_eq!((after.remaining, after.reset_after_us), (10, 0));
        }
        assert_eq!(drain(fixture, &subject, &limit).await, 10);
    }
}

/// A debit empties a key at most, so that it refills in its usual time.
pub async fn debit_never_goes_below_empty(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 0);
        for cost in [4, 100, u64::MAX] {
            let after =
                apply_one(fixture, &subject, &limit, Operation::Debit { cost, age_us: 0 }).await;
            assert_eq!(after.verdict, VerdictKind::Allow);
            assert_eq!(after.remaining, if cost == 4 { 6 } else { 0 });
        }
        at(fixture, 120 * S);
        assert_eq!(drain(fixture, &subject, &limit).await, 10, "{kind:?}");
    }
}

/// Of a debit half a window ago, a bucket has refilled half and a log nothing; after a full window it no
/// longer counts.
pub async fn old_debit_counts_only_what_has_not_expired(fixture: &impl Fixture) {
    for (kind, remaining) in [
        (Kind::TokenBucket, 5),
        (Kind::SlidingWindow, 0),
        (Kind::SlidingCounter, 0),
        (Kind::FixedWindow, 0),
        (Kind::CalendarWindow, 0),
        (Kind::Concurrency, 0),
    ] {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 630 * S);
        let debit = |age_us| Operation::Debit { cost: 10, age_us };
        assert_eq!(
            apply_one(fixture, &subject, &limit, debit(120 * S)).await.remaining,
            10,
            "{kind:?}"
        );
        assert_eq!(
            apply_one(fixture, &subject, &limit, debit(30 * S)).await.remaining,
            remaining,
            "{kind:?}"
        );
    }
    let limit = ten_a_minute(Kind::SlidingWindow);
    at(fixture, 660 * S - 1);
    assert_eq!(peek(fixture, "SlidingWindow", &limit, 1).await.remaining, 0);
    at(fixture, 660 * S);
    assert_eq!(peek(fixture, "SlidingWindow", &limit, 1).await.remaining, 10);
}

/// A pause refuses every take, even from a full key; the wait is the longer one of pause and limit.
pub async fn pause_refuses_until_it_ends(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 0);
        let after =
            apply_one(fixture, &subject, &limit, Operation::Pause { length_us: 5 * S }).await;
        assert_eq!((after.remaining, after.reset_after_us), (0, 5 * S));
        assert_eq!(take(fixture, &subject, &limit, 1).await.retry_after_us, Some(5 * S));
        assert_eq!(take(fixture, &subject, &limit, 11).await.verdict, VerdictKind::Never);
        at(fixture, 5 * S - 1);
        assert!(!take(fixture, &subject, &limit, 1).await.is_allowed());
        at(fixture, 5 * S);
        assert_eq!(drain(fixture, &subject, &limit).await, 10);
        let wait = peek(fixture, &subject, &limit, 10).await.retry_after_us.unwrap_or(0);
        let _ = apply_one(fixture, &subject, &limit, Operation::Pause { length_us: S }).await;
        assert_eq!(peek(fixture, &subject, &limit, 10).await.retry_after_us, Some(wait.max(S)));
    }
}

/// Two pauses arrive in any order: the longer one applies.
pub async fn shorter_pause_does_not_shorten_a_longer_one(fixture: &impl Fixture) {
    let limit = ten_a_minute(Kind::TokenBucket);
    at(fixture, 0);
    for length_us in [30 * S, 5 * S] {
        let after = apply_one(fixture, "k", &limit, Operation::Pause { length_us }).await;
        assert_eq!(after.reset_after_us, 30 * S);
    }
    at(fixture, 30 * S);
    assert!(take(fixture, "k", &limit, 1).await.is_allowed());
}

/// After a reset, a used and paused key is fresh.
pub async fn reset_clears_all_state(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 0);
        assert_eq!(drain(fixture, &subject, &limit).await, 10);
        let _ =
            apply_one(fixture, &subject, &limit, Operation::Pause { length_us: 1000 * S }).await;
        let after = apply_one(fixture, &subject, &limit, Operation::Reset).await;
        assert_eq!((after.remaining, after.reset_after_us), (10, 0));
        assert_eq!(drain(fixture, &subject, &limit).await, 10);
    }
}

/// Stats exclude expired takes.
pub async fn stats_take_nothing(fixture: &impl Fixture) {
    let limit = ten_a_minute(Kind::SlidingWindow);
    let subject = Subject::of(["k"]);
    let key = Key::new(&subject, &limit);
    at(fixture, 0);
    let _ = take(fixture, "k", &limit, 4).await;
    at(fixture, 10 * S);
    let _ = take(fixture, "k", &limit, 2).await;
    for (now, count) in [(59 * S, 6), (60 * S, 2), (70 * S, 0)] {
        at(fixture, now);
        let stats = fixture.store().stats(&key).await.expect("store is available");
        assert_eq!((stats.count(), stats.remaining()), (count, 10 - count));
    }
}
