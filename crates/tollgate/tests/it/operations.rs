//! Helper: applies one operation of a history to a memory store.

use std::time::Duration;

use tollgate::lease::WantedLease;
use tollgate::{Key, ManualClock, MemoryStore, Plan, Status, Take};
use tollgate_testkit::answer::{Answer, Operation};
use tollgate_testkit::conformance::{permit_id, permit_on};

pub(crate) fn apply(
    store: &MemoryStore<ManualClock>,
    key: Key<'_>,
    operation: Operation,
) -> Answer {
    let plan = |cost| Plan::new([Take::new(key, cost)]).unwrap();
    let decision = match operation {
        Operation::Take { cost } => store.take(&plan(cost)),
        Operation::Peek { cost } => store.peek(&plan(cost)),
        Operation::Refund { cost } => store.refund(&plan(cost)),
        Operation::Debit { cost, age_us } => {
            store.debit(&plan(cost), Duration::from_micros(age_us))
        }
        Operation::Lease { cost, amount, hold_us } => {
            let wanted = WantedLease::new([(cost, amount)], Duration::from_micros(hold_us));
            let reply = store.lease(&plan(cost), &wanted).unwrap();
            return Answer::from_grant(key.limit(), &reply.takes()[0]);
        }
        Operation::Hold { cost, permit } => store.take(&plan(cost).with_permit(permit_id(permit))),
        Operation::Release { permit } => {
            store.release(&permit_on(&[key], permit));
            return Answer::from(&store.stats(&key));
        }
        Operation::Renew { permit } => {
            store.renew(&permit_on(&[key], permit));
            return Answer::from(&store.stats(&key));
        }
        Operation::Pause { length_us } => {
            store.pause(&key, Duration::from_micros(length_us));
            return Answer::from(&store.stats(&key));
        }
        Operation::Reset => {
            store.reset(&key);
            return Answer::from(&store.stats(&key));
        }
        Operation::Reserve { .. } | Operation::Settle { .. } | Operation::Extend { .. } => {
            unreachable!("histories of snapshots have no reservations, which are not saved")
        }
    };
    decision.deciding().map(|status: &Status<'_>| Answer::from(status)).unwrap()
}
