//! Applies operations to a store.

use std::time::Duration;

use tollgate::lease::WantedLease;
use tollgate::{Key, Limit, Permit, PermitId, Plan, Store, Subject, Take};

use super::{Fixture, reservations};
use crate::answer::{Answer, Operation};

/// Applies one operation to all `limits` of `subject` and returns one answer per limit.
pub(crate) async fn apply(
    fixture: &impl Fixture,
    subject: &str,
    limits: &[&Limit],
    operation: Operation,
) -> Vec<Answer> {
    let name = subject;
    let subject = Subject::of([name]);
    let keys: Vec<Key<'_>> = limits.iter().map(|limit| Key::new(&subject, limit)).collect();
    let plan =
        |cost: u64| Plan::new(keys.iter().map(|key| Take::new(*key, cost))).expect("limits differ");
    let store = fixture.store();
    let decision = match operation {
        Operation::Take { cost } => store.take(&plan(cost)).await,
        Operation::Peek { cost } => store.peek(&plan(cost)).await,
        Operation::Refund { cost } => store.refund(&plan(cost)).await,
        Operation::Debit { cost, age_us } => {
            store.debit(&plan(cost), Duration::from_micros(age_us)).await
        }
        Operation::Lease { cost, amount, hold_us } => {
            let takes = keys.iter().map(|_| (cost, amount));
            let wanted = WantedLease::new(takes, Duration::from_micros(hold_us));
            let reply = store.lease(&plan(cost), &wanted).await.expect("store is available");
            let reply = reply.expect("the plan can be leased");
            let grants = limits.iter().zip(reply.takes());
            return grants.map(|(limit, grant)| Answer::from_grant(limit, grant)).collect();
        }
        Operation::Hold { cost, permit } => {
            store.take(&plan(cost).with_permit(permit_id(permit))).await
        }
        Operation::Reserve { .. } | Operation::Settle { .. } | Operation::Extend { .. } => {
            return reservations::apply(fixture, name, limits, operation).await;
        }
        Operation::Release { permit } => {
            store.release(&permit_on(&keys, permit)).await.expect("released");
            store.peek(&plan(0)).await
        }
        Operation::Renew { permit } => {
            store.renew(&permit_on(&keys, permit)).await.expect("renewed");
            store.peek(&plan(0)).await
        }
        Operation::Pause { length_us } => {
            for key in &keys {
                store.pause(key, Duration::from_micros(length_us)).await.expect("paused");
            }
            store.peek(&plan(0)).await
        }
        Operation::Reset => {
            for key in &keys {
                store.reset(key).await.expect("reset");
            }
            store.peek(&plan(0)).await
        }
    };
    decision.expect("store is available").statuses().iter().map(Answer::from).collect()
}

/// Returns the permit id with this number.
pub fn permit_id(number: u64) -> PermitId {
    PermitId::from_u128(number.into()).expect("permit numbers start at 1")
}

/// Returns the permit with this number on these keys.
pub fn permit_on(keys: &[Key<'_>], number: u64) -> Permit {
    let held = keys.iter().map(|key| format!("@{}{{{}}}", key.limit().identity(), key.subject()));
    let text = format!("{}{}", permit_id(number), held.collect::<String>());
    text.parse().expect("valid permit text")
}
