//! Shadow limits.

use tollgate::{Decision, Key, Limit, Plan, Store, Subject, Take};

use super::{Fixture, at, bucket, peek};

async fn take_with_shadows<'a>(
    fixture: &impl Fixture,
    subject: &'a Subject,
    enforced: &'a Limit,
    shadows: &[(&'a Limit, u16)],
) -> Decision<'a> {
    let shadow_takes =
        shadows.iter().map(|(limit, group)| Take::new(Key::new(subject, limit), 1).shadow(*group));
    let takes = std::iter::once(Take::new(Key::new(subject, enforced), 1)).chain(shadow_takes);
    let plan = Plan::new(takes).expect("limits differ");
    fixture.store().take(&plan).await.expect("store is available")
}

fn in_rule(limit: Limit, rule: &str) -> Limit {
    limit.in_rule(rule).expect("a valid name")
}

/// An exhausted shadow limit refuses in its own status only, and the request passes.
pub async fn shadow_limit_never_refuses(fixture: &impl Fixture) {
    let (enforced, tight) = (bucket(10, 60), in_rule(bucket(1, 60), "trial"));
    let subject = Subject::of(["k"]);
    at(fixture, 0);
    for nth in 0..3 {
        let decision = take_with_shadows(fixture, &subject, &enforced, &[(&tight, 1)]).await;
        assert!(decision.is_allowed());
        assert_eq!(decision.statuses()[1].verdict().is_allowed(), nth == 0);
        let deciding = decision.deciding().expect("has an enforced limit");
        assert_eq!(deciding.limit(), &enforced);
    }
}

/// A refused request does not debit shadow limits.
pub async fn enforced_refusal_debits_no_shadow_limit(fixture: &impl Fixture) {
    let (enforced, shadow) = (bucket(1, 60), in_rule(bucket(10, 60), "trial"));
    let subject = Subject::of(["k"]);
    at(fixture, 0);
    for _ in 0..5 {
        let _ = take_with_shadows(fixture, &subject, &enforced, &[(&shadow, 1)]).await;
    }
    assert_eq!(peek(fixture, "k", &shadow, 1).await.remaining, 9);
}

/// A shadow group that would refuse debits none of its limits; other groups are independent.
pub async fn shadow_group_is_all_or_nothing(fixture: &impl Fixture) {
    let enforced = bucket(100, 60);
    let (tight, loose) = (in_rule(bucket(1, 60), "a"), in_rule(bucket(10, 3600), "a"));
    let other = in_rule(bucket(10, 60), "b");
    let subject = Subject::of(["k"]);
    at(fixture, 0);
    for _ in 0..3 {
        let shadows = [(&tight, 1), (&loose, 1), (&other, 2)];
        let decision = take_with_shadows(fixture, &subject, &enforced, &shadows).await;
        assert!(decision.is_allowed());
    }
    assert_eq!(peek(fixture, "k", &loose, 1).await.remaining, 9);
    assert_eq!(peek(fixture, "k", &other, 1).await.remaining, 7);
}
