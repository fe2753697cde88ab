//! Permits and slots.

use std::time::Duration;

use tollgate::{Decision, Key, Limit, Permit, PermitId, Plan, Store, Subject, Take};

use super::{Fixture, S, apply_one, at, bucket, peek, permit_id, permit_on, take};
use crate::answer::{Operation, VerdictKind};

fn slots(count: u64, seconds: u64) -> Limit {
    Limit::concurrency(count, Duration::from_secs(seconds)).expect("valid limit")
}

/// Takes with a permit id and returns the decision and the permit.
async fn hold<'a>(
    fixture: &impl Fixture,
    takes: impl IntoIterator<Item = Take<'a>>,
    permit: PermitId,
) -> (Decision<'a>, Option<Permit>) {
    let plan = Plan::new(takes).expect("limits differ").with_permit(permit);
    let decision = fixture.store().take(&plan).await.expect("store is available");
    let permit = Permit::of(&plan, &decision);
    (decision, permit)
}

async fn hold_one(fixture: &impl Fixture, limit: &Limit, permit: u64) -> Option<Permit> {
    let subject = Subject::of(["k"]);
    hold(fixture, [Take::new(Key::new(&subject, limit), 1)], permit_id(permit)).await.1
}

async fn release(fixture: &impl Fixture, permit: &Permit) -> bool {
    fixture.store().release(permit).await.expect("store is available")
}

async fn renew(fixture: &impl Fixture, permit: &Permit) -> Option<u64> {
    fixture
        .store()
        .renew(permit)
        .await
        .expect("store is available")
        .map(tollgate::Timestamp::as_micros)
}

/// A released slot can be taken again, and is released only once.
pub async fn release_frees_the_slots_of_a_permit(fixture: &impl Fixture) {
    let limit = slots(2, 30);
    at(fixture, 0);
    let first = hold_one(fixture, &limit, 1).await.expect("two slots are free");
    at(fixture, S);
    let _ = hold_one(fixture, &limit, 2).await.expect("one slot is free");
    assert_eq!(hold_one(fixture, &limit, 3).await, None);
    let refused = take(fixture, "k", &limit, 1).await;
    assert_eq!((refused.verdict, refused.retry_after_us), (VerdictKind::Deny, Some(29 * S)));
    assert_eq!(peek(fixture, "k", &limit, 2).await.retry_after_us, Some(30 * S));
    assert!(release(fixture, &first).await);
    assert!(!release(fixture, &first).await);
    assert_eq!(peek(fixture, "k", &limit, 1).await.remaining, 1);
    assert!(take(fixture, "k", &limit, 1).await.is_allowed());
}

/// A slot is held until one microsecond before its expiry; at its expiry, the permit holds nothing.
pub async fn slot_expires_at_exactly_its_ttl(fixture: &impl Fixture) {
    let limit = slots(1, 30);
    at(fixture, 5 * S);
    let permit = hold_one(fixture, &limit, 1).await.expect("free");
    at(fixture, 35 * S - 1);
    assert_eq!(take(fixture, "k", &limit, 1).await.retry_after_us, Some(1));
    at(fixture, 35 * S);
    assert!(!release(fixture, &permit).await);
    assert!(take(fixture, "k", &limit, 1).await.is_allowed());
    assert!(!release(fixture, &permit).await, "it would release a slot of another permit");
}

/// A renewal extends a slot by the TTL with which it was taken, from the time of the renewal.
pub async fn renewal_extends_by_the_original_ttl(fixture: &impl Fixture) {
    let limit = slots(1, 30);
    at(fixture, 0);
    let permit = hold_one(fixture, &limit, 1).await.expect("free");
    for now in [10 * S, 39 * S, 68 * S] {
        at(fixture, now);
        assert_eq!(renew(fixture, &permit).await, Some(now + 30 * S));
    }
    at(fixture, 98 * S - 1);
    assert_eq!(peek(fixture, "k", &slots(1, 60), 1).await.retry_after_us, Some(1));
}

/// An expired slot stays with its new holder.
pub async fn expired_slot_cannot_be_renewed(fixture: &impl Fixture) {
    let limit = slots(1, 30);
    at(fixture, 0);
    let late = hold_one(fixture, &limit, 1).await.expect("free");
    at(fixture, 30 * S);
    assert_eq!(renew(fixture, &late).await, None);
    assert_eq!(peek(fixture, "k", &limit, 1).await.remaining, 1);
    let _ = hold_one(fixture, &limit, 2).await.expect("the slot is free again");
    at(fixture, 40 * S);
    assert_eq!(renew(fixture, &late).await, None);
    assert_eq!(peek(fixture, "k", &limit, 1).await.retry_after_us, Some(20 * S));
}

/// Each of two permits on one key releases its own slots.
pub async fn permits_on_one_key_are_independent(fixture: &impl Fixture) {
    let (limit, subject) = (slots(10, 30), Subject::of(["k"]));
    let take = |cost| Take::new(Key::new(&subject, &limit), cost);
    at(fixture, 0);
    let (_, three) = hold(fixture, [take(3)], PermitId::random()).await;
    let (_, five) = hold(fixture, [take(5)], PermitId::random()).await;
    for (permit, remaining) in [(three, 5), (five, 10)] {
        assert!(release(fixture, &permit.expect("slots were free")).await);
        assert_eq!(peek(fixture, "k", &limit, 1).await.remaining, remaining);
    }
}

/// A permit with a wrong id or an unknown key releases nothing and is not an error.
pub async fn forged_permit_releases_nothing(fixture: &impl Fixture) {
    let (limit, unused) = (slots(1, 30), slots(1, 30).in_rule("unused").expect("a valid name"));
    let subject = Subject::of(["k"]);
    at(fixture, 0);
    let _ = hold_one(fixture, &limit, 1).await.expect("free");
    for forged in
        [permit_on(&[Key::new(&subject, &limit)], 2), permit_on(&[Key::new(&subject, &unused)], 1)]
    {
        assert!(!release(fixture, &forged).await);
        assert_eq!(renew(fixture, &forged).await, None);
    }
    assert!(!take(fixture, "k", &limit, 1).await.is_allowed());
    // No permit can release a slot that was taken without one.
    let _ = take(fixture, "other", &limit, 1).await;
    assert!(!release(fixture, &permit_on(&[Key::new(&Subject::of(["other"]), &limit)], 1)).await);
}

/// A permit that has lost the slot of one key renews none, and can still release the others.
pub async fn renewal_is_all_or_nothing(fixture: &impl Fixture) {
    let (short, long) = (slots(1, 10), slots(1, 30).in_rule("long").expect("a valid name"));
    let (one, other) = (Subject::of(["one"]), Subject::of(["other"]));
    let takes = [Take::new(Key::new(&other, &long), 1), Take::new(Key::new(&one, &short), 1)];
    at(fixture, 0);
    let permit = hold(fixture, takes, permit_id(1)).await.1.expect("both slots are free");
    at(fixture, 5 * S);
    assert_eq!(renew(fixture, &permit).await, Some(15 * S), "the earlier expiry of both");
    at(fixture, 15 * S);
    assert_eq!(renew(fixture, &permit).await, None);
    assert_eq!(peek(fixture, "other", &long, 1).await.retry_after_us, Some(20 * S));
    assert!(release(fixture, &permit).await);
    assert_eq!(peek(fixture, "other", &long, 1).await.remaining, 1);
}

/// A request refused by its rate holds no slot; one refused by the concurrency limit costs no token.
pub async fn slots_and_tokens_are_all_or_nothing(fixture: &impl Fixture) {
    let (limit, rate, subject) = (slots(2, 30), bucket(3, 3600), Subject::of(["k"]));
    let takes = || [&limit, &rate].map(|limit| Take::new(Key::new(&subject, limit), 1));
    at(fixture, 0);
    for nth in 1..=4 {
        let (decision, permit) = hold(fixture, takes(), permit_id(nth)).await;
        assert_eq!(permit.is_some(), nth <= 2, "take {nth}");
        assert_eq!(decision.is_allowed(), nth <= 2);
    }
    assert_eq!(peek(fixture, "k", &rate, 1).await.remaining, 1);
    let first = permit_on(&[Key::new(&subject, &limit)], 1);
    assert!(release(fixture, &first).await);
    let (_, fifth) = hold(fixture, takes(), permit_id(5)).await;
    assert_eq!(fifth.expect("both limits allow").held().len(), 1, "tokens are not held");
    assert!(release(fixture, &permit_on(&[Key::new(&subject, &limit)], 5)).await);
    assert_eq!(hold(fixture, takes(), permit_id(6)).await.1, None, "no token is left");
    assert_eq!(peek(fixture, "k", &limit, 1).await.remaining, 1);
}

/// A refund does not identify a slot.
pub async fn refund_releases_no_slot(fixture: &impl Fixture) {
    let limit = slots(2, 30);
    at(fixture, 0);
    let _ = hold_one(fixture, &limit, 1).await.expect("free");
    for cost in [0, 1, u64::MAX] {
        let after = apply_one(fixture, "k", &limit, Operation::Refund { cost }).await;
        assert_eq!((after.verdict, after.remaining), (VerdictKind::Allow, 1));
    }
}

/// During a pause, held slots can be renewed and released, but none can be taken.
pub async fn permit_can_be_renewed_and_released_during_a_pause(fixture: &impl Fixture) {
    let limit = slots(1, 30);
    at(fixture, 0);
    let permit = hold_one(fixture, &limit, 1).await.expect("free");
    let _ = apply_one(fixture, "k", &limit, Operation::Pause { length_us: 40 * S }).await;
    at(fixture, 20 * S);
    assert_eq!(renew(fixture, &permit).await, Some(50 * S));
    assert_eq!(peek(fixture, "k", &limit, 1).await.retry_after_us, Some(30 * S));
    assert!(release(fixture, &permit).await);
    assert_eq!(hold_one(fixture, &limit, 2).await, None, "the key is paused");
    at(fixture, 40 * S);
    assert!(hold_one(fixture, &limit, 2).await.is_some());
}

/// Slots of shadow limits are held and released too; a shadow group that would refuse holds nothing.
pub async fn permit_holds_slots_of_passing_shadow_groups(fixture: &impl Fixture) {
    let in_rule = |count, rule| slots(count, 30).in_rule(rule).expect("a valid name");
    let (enforced, wide, tight) = (slots(9, 30), in_rule(9, "wide"), in_rule(1, "tight"));
    let rate = bucket(9, 60).in_rule("tight").expect("a valid name");
    let subject = Subject::of(["k"]);
    let take = |limit| Take::new(Key::new(&subject, limit), 1);
    let takes =
        || [take(&enforced), take(&wide).shadow(1), take(&tight).shadow(2), take(&rate).shadow(2)];
    at(fixture, 0);
    let first = hold(fixture, takes(), permit_id(1)).await.1.expect("no limit refuses");
    let second = hold(fixture, takes(), permit_id(2)).await.1.expect("no enforced limit refuses");
    assert_eq!((first.held().len(), second.held().len()), (3, 2));
    for (limit, used) in [(&enforced, 2), (&wide, 2), (&tight, 1), (&rate, 1)] {
        assert_eq!(peek(fixture, "k", limit, 1).await.count, used, "{}", limit.rule());
    }
    assert!(release(fixture, &first).await);
    assert!(release(fixture, &second).await);
    for limit in [&enforced, &wide, &tight] {
        assert_eq!(peek(fixture, "k", limit, 1).await.count, 0, "{}", limit.rule());
    }
}

/// A release drops expired slots, as a take does.
pub async fn release_drops_expired_slots(fixture: &impl Fixture) {
    let (short, long) = (slots(3, 10), slots(3, 30));
    at(fixture, 0);
    let _ = hold_one(fixture, &short, 1).await.expect("free");
    at(fixture, 5 * S);
    let second = hold_one(fixture, &long, 2).await.expect("free");
    let _ = hold_one(fixture, &long, 3).await.expect("free");
    at(fixture, 10 * S);
    assert!(release(fixture, &second).await);
    at(fixture, 9 * S);
    assert_eq!(peek(fixture, "k", &long, 1).await.count, 1);
}

/// A TTL lowered from a year to a minute also applies to held slots.
pub async fn lowered_ttl_shortens_held_slots(fixture: &impl Fixture) {
    let (long, short) = (slots(1, 365 * 86_400), slots(1, 60));
    at(fixture, 0);
    let permit = hold_one(fixture, &long, 1).await.expect("free");
    at(fixture, 10 * S);
    assert_eq!(take(fixture, "k", &short, 1).await.retry_after_us, Some(60 * S));
    at(fixture, 20 * S);
    assert_eq!(peek(fixture, "k", &short, 1).await.retry_after_us, Some(50 * S));
    assert_eq!(renew(fixture, &permit).await, Some(80 * S));
}
