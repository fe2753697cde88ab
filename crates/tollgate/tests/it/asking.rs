//! One operation of a history, asked of a memory store.

use std::time::Duration;

use tollgate::{Key, ManualClock, MemoryStore, Plan, Status, Take};
use tollgate_testkit::answer::{Answer, Ask};
use tollgate_testkit::conformance::{lease_id, lease_on};

pub(crate) fn ask(store: &MemoryStore<ManualClock>, key: Key<'_>, ask: Ask) -> Answer {
    let plan = |cost| Plan::new([Take::new(key, cost)]).unwrap();
    let decision = match ask {
        Ask::Take { cost } => store.take(&plan(cost)),
        Ask::Peek { cost } => store.peek(&plan(cost)),
        Ask::Refund { cost } => store.refund(&plan(cost)),
        Ask::Debit { cost, age_us } => store.debit(&plan(cost), Duration::from_micros(age_us)),
        Ask::Hold { cost, lease } => store.take(&plan(cost).with_lease(lease_id(lease))),
        Ask::Release { lease } => {
            store.release(&lease_on(&[key], lease));
            return Answer::from(&store.stats(&key));
        }
        Ask::Renew { lease } => {
            store.renew(&lease_on(&[key], lease));
            return Answer::from(&store.stats(&key));
        }
        Ask::Pause { length_us } => {
            store.pause(&key, Duration::from_micros(length_us));
            return Answer::from(&store.stats(&key));
        }
        Ask::Reset => {
            store.reset(&key);
            return Answer::from(&store.stats(&key));
        }
    };
    decision.deciding().map(|status: &Status<'_>| Answer::from(status)).unwrap()
}
