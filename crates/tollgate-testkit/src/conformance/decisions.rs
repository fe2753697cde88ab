//! Takes and decisions.

use std::collections::HashSet;

use tollgate::{Key, Limit, Plan, Quota, Store, Subject, Take};

use super::{Fixture, MS, S, apply, at, bucket, drain, peek, take, ten_a_minute};
use crate::answer::{Operation, VerdictKind};
use crate::random::Random;
use crate::spec::{Kind, LimitSpec};

/// Capacity 10, 10 per 100 s, emptied at 0.
pub async fn bucket_refills_evenly_and_reports_exact_retry(fixture: &impl Fixture) {
    let limit = bucket(10, 100);
    at(fixture, 0);
    assert_eq!(drain(fixture, "k", &limit).await, 10);
    at(fixture, 97_000 * MS);
    assert_eq!(drain(fixture, "k", &limit).await, 9);
    let tenth = take(fixture, "k", &limit, 1).await;
    assert_eq!((tenth.verdict, tenth.retry_after_us), (VerdictKind::Deny, Some(3000 * MS)));
    at(fixture, 100_000 * MS);
    assert_eq!(drain(fixture, "k", &limit).await, 1);
}

/// After any history and an idle time, a key admits at most its burst.
pub async fn idle_key_never_admits_more_than_burst(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        let limit = ten_a_minute(kind);
        let mut random = Random::new(17);
        let mut now = 0;
        for round in 0..50 {
            let subject = format!("{kind:?}");
            now += random.magnitude(200 * S);
            at(fixture, now);
            let _ = take(fixture, &subject, &limit, random.within(1, 10)).await;
            // One request, then idle for most of a refill: another implementation admits 17 of 10 here.
            now += random.within(53_400 * MS, 59_999 * MS);
            at(fixture, now);
            let passed = drain(fixture, &subject, &limit).await;
            assert!(passed <= 10, "{kind:?} admitted {passed} of 10 in round {round}");
        }
    }
}

/// With 10/min and 100/h, the refused eleventh take leaves 90 of the hour limit.
pub async fn refused_take_debits_no_limit(fixture: &impl Fixture) {
    let (minute, hour) = (bucket(10, 60), bucket(100, 3600));
    at(fixture, 0);
    for _ in 0..10 {
        let answers = apply(fixture, "k", &[&minute, &hour], Operation::Take { cost: 1 }).await;
        assert!(answers.iter().all(crate::answer::Answer::is_allowed));
    }
    let refused = apply(fixture, "k", &[&minute, &hour], Operation::Take { cost: 1 }).await;
    assert_eq!((refused[0].verdict, refused[1].verdict), (VerdictKind::Deny, VerdictKind::Allow));
    assert_eq!(refused[1].remaining, 90);
    assert_eq!(peek(fixture, "k", &hour, 1).await.remaining, 90);
}

/// If one of two subjects in a plan is exhausted, the other is not debited.
pub async fn plan_over_several_subjects_is_all_or_nothing(fixture: &impl Fixture) {
    let limit = bucket(3, 60);
    at(fixture, 0);
    assert_eq!(drain(fixture, "empty", &limit).await, 3);
    let (full, empty) = (Subject::of(["full"]), Subject::of(["empty"]));
    let takes = [Take::new(Key::new(&full, &limit), 1), Take::new(Key::new(&empty, &limit), 1)];
    for order in [[0, 1], [1, 0]] {
        let plan = Plan::new(order.map(|index| takes[index])).expect("two takes");
        let decision = fixture.store().take(&plan).await.expect("store is available");
        assert!(!decision.is_allowed());
        let deciding = decision.deciding().expect("has an enforced limit");
        assert_eq!(deciding.remaining(), 0);
    }
    assert_eq!(peek(fixture, "full", &limit, 1).await.remaining, 3);
}

/// Two takes of one key in a plan are one take of both costs.
pub async fn costs_on_one_key_are_merged(fixture: &impl Fixture) {
    let limit = bucket(3, 60);
    let subject = Subject::of(["k"]);
    let key = Key::new(&subject, &limit);
    at(fixture, 0);
    let plan = Plan::new([Take::new(key, 2), Take::new(key, 2)]).expect("one counter");
    let decision = fixture.store().take(&plan).await.expect("store is available");
    assert!(!decision.is_allowed());
    let plan = Plan::new([Take::new(key, 2), Take::new(key, 1)]).expect("one counter");
    let decision = fixture.store().take(&plan).await.expect("store is available");
    assert!(decision.is_allowed());
    assert_eq!(decision.remaining(), Some(0));
}

/// Cost 0 is always allowed and takes nothing, whether the key is full or empty.
pub async fn cost_zero_is_a_peek(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 0);
        assert_eq!(take(fixture, &subject, &limit, 0).await.remaining, 10);
        assert_eq!(drain(fixture, &subject, &limit).await, 10);
        let empty = take(fixture, &subject, &limit, 0).await;
        assert_eq!((empty.verdict, empty.remaining, empty.count), (VerdictKind::Allow, 0, 10));
    }
}

/// The verdict is `Never` without a retry time, and nothing is taken.
pub async fn cost_above_burst_never_passes(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 0);
        for cost in [11, u64::MAX] {
            let answer = take(fixture, &subject, &limit, cost).await;
            assert_eq!((answer.verdict, answer.retry_after_us), (VerdictKind::Never, None));
            assert_eq!(answer.remaining, 10);
        }
        assert!(take(fixture, &subject, &limit, 10).await.is_allowed());
    }
}

/// A block refuses every cost.
pub async fn block_never_passes(fixture: &impl Fixture) {
    let (block, open) = (Limit::block(), bucket(10, 60));
    at(fixture, 0);
    for cost in [0, 1, 100] {
        assert_eq!(take(fixture, "k", &block, cost).await.verdict, VerdictKind::Never);
    }
    let both = apply(fixture, "k", &[&open, &block], Operation::Take { cost: 1 }).await;
    assert_eq!(both[1].verdict, VerdictKind::Never);
    assert_eq!(peek(fixture, "k", &open, 1).await.remaining, 10);
}

/// The take is refused one microsecond before `retry_after`, and passes at it.
pub async fn retry_after_is_exact_to_the_microsecond(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        let limit = ten_a_minute(kind);
        let mut random = Random::new(5);
        let (subject, mut now) = (format!("{kind:?}"), 7);
        for _ in 0..200 {
            at(fixture, now);
            let cost = random.within(1, 10);
            if let Some(wait) = take(fixture, &subject, &limit, cost).await.retry_after_us {
                at(fixture, now + wait - 1);
                assert!(
                    !peek(fixture, &subject, &limit, cost).await.is_allowed(),
                    "{kind:?} passes before retry_after"
                );
                at(fixture, now + wait);
                assert!(
                    peek(fixture, &subject, &limit, cost).await.is_allowed(),
                    "{kind:?} is refused at retry_after"
                );
                now += wait;
            }
            now += random.magnitude(9 * S);
        }
    }
}

/// 7/min, 1 000 000/day, 999 983/day and 10⁹/30 d refill exactly after one window.
pub async fn unusual_rates_are_exact_over_a_full_window(fixture: &impl Fixture) {
    const DAY: u64 = 86_400 * S;
    let rates = [(7, 60 * S), (1_000_000, DAY), (999_983, DAY), (1_000_000_000, 30 * DAY)];
    for (count, window) in rates {
        let limit = LimitSpec::new(Kind::TokenBucket, count, window).build().expect("valid limit");
        let subject = format!("{count}");
        at(fixture, 0);
        assert!(take(fixture, &subject, &limit, count).await.is_allowed());
        assert!(!take(fixture, &subject, &limit, 1).await.is_allowed());
        // A rate that does not fit 2^53 loses at most 10⁻⁹.
        let slack = window / 1_000_000_000 + 1;
        at(fixture, window - slack);
        assert!(
            !take(fixture, &subject, &limit, count).await.is_allowed(),
            "{count} refilled early"
        );
        at(fixture, window + slack);
        assert!(take(fixture, &subject, &limit, count).await.is_allowed(), "{count} refilled late");
    }
}

/// Subjects with separators, hash tags, escapes, NUL and parts of each other never collide.
pub async fn hostile_subjects_never_share_state(fixture: &impl Fixture) {
    let quota = Quota::per_minute(1);
    let limit = Limit::token_bucket(quota).expect("valid limit");
    let pieces: [&[u8]; 14] = [
        b"", b"a", b":", b"{", b"}", b"/", b"%", b"%3A", b"\0", b"\r\n", b"\xff", b" ", b"a:b",
        b"{a}",
    ];
    at(fixture, 0);
    let mut seen = HashSet::new();
    for first in pieces {
        for second in pieces {
            for facts in [vec![first], vec![first, second], vec![first, second, first]] {
                if !seen.insert(facts.clone()) {
                    continue;
                }
                let subject = Subject::of(&facts);
                let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).expect("one take");
                let decision = fixture.store().take(&plan).await.expect("store is available");
                assert!(decision.is_allowed(), "{facts:?} shares state with another subject");
            }
        }
    }
}

/// A request without limits passes without figures.
pub async fn empty_plan_passes(fixture: &impl Fixture) {
    let plan = Plan::new([]).expect("an empty plan is valid");
    let decision = fixture.store().take(&plan).await.expect("store is available");
    assert!(decision.is_allowed());
    assert_eq!((decision.remaining(), decision.statuses().len()), (None, 0));
}
