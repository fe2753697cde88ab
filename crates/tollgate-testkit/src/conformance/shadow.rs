//! Limits that are only watched.

use tollgate::{Decision, Key, Limit, Plan, Store, Subject, Take};

use super::{Fixture, at, bucket, peek};

async fn take_beside<'a>(
    fixture: &impl Fixture,
    subject: &'a Subject,
    enforced: &'a Limit,
    shadows: &[(&'a Limit, u16)],
) -> Decision<'a> {
    let watched =
        shadows.iter().map(|(limit, group)| Take::new(Key::new(subject, limit), 1).shadow(*group));
    let takes = std::iter::once(Take::new(Key::new(subject, enforced), 1)).chain(watched);
    let plan = Plan::new(takes).expect("limits differ");
    fixture.store().take(&plan).await.expect("answers")
}

fn in_rule(limit: Limit, rule: &str) -> Limit {
    limit.in_rule(rule).expect("a valid name")
}

/// An exhausted shadow limit says so in its status, and the request passes.
pub async fn shadow_limit_never_refuses(fixture: &impl Fixture) {
    let (enforced, tight) = (bucket(10, 60), in_rule(bucket(1, 60), "trial"));
    let subject = Subject::of(["k"]);
    at(fixture, 0);
    for nth in 0..3 {
        let decision = take_beside(fixture, &subject, &enforced, &[(&tight, 1)]).await;
        assert!(decision.is_allowed());
        assert_eq!(decision.statuses()[1].verdict().is_allowed(), nth == 0);
        let deciding = decision.deciding().expect("the enforced one");
        assert_eq!(deciding.limit(), &enforced);
    }
}

/// What is refused is not counted by those who only watch.
pub async fn enforced_refusal_debits_no_shadow_limit(fixture: &impl Fixture) {
    let (enforced, watched) = (bucket(1, 60), in_rule(bucket(10, 60), "trial"));
    let subject = Subject::of(["k"]);
    at(fixture, 0);
    for _ in 0..5 {
        let _ = take_beside(fixture, &subject, &enforced, &[(&watched, 1)]).await;
    }
    assert_eq!(peek(fixture, "k", &watched, 1).await.remaining, 9);
}

/// A group that would refuse debits none of its own; another group is another matter.
pub async fn shadow_group_is_all_or_nothing(fixture: &impl Fixture) {
    let enforced = bucket(100, 60);
    let (tight, loose) = (in_rule(bucket(1, 60), "a"), in_rule(bucket(10, 3600), "a"));
    let other = in_rule(bucket(10, 60), "b");
    let subject = Subject::of(["k"]);
    at(fixture, 0);
    for _ in 0..3 {
        let shadows = [(&tight, 1), (&loose, 1), (&other, 2)];
        let decision = take_beside(fixture, &subject, &enforced, &shadows).await;
        assert!(decision.is_allowed());
    }
    assert_eq!(peek(fixture, "k", &loose, 1).await.remaining, 9);
    assert_eq!(peek(fixture, "k", &other, 1).await.remaining, 7);
}
