//! Expired equals never seen: a store that forgets at every chance answers as one that never does.

use std::time::Duration;

use tollgate::{Key, Limit, ManualClock, MemoryStore, Plan, Status, Subject, Take, Timestamp};
use tollgate_testkit::answer::{Answer, Ask};
use tollgate_testkit::conformance::{lease_id, lease_on};
use tollgate_testkit::history::{History, Wildness};
use tollgate_testkit::spec::Kind;

fn ask(store: &MemoryStore<ManualClock>, key: Key<'_>, ask: Ask) -> Answer {
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

#[test]
fn a_store_that_forgets_answers_as_one_that_does_not() {
    let mut forgotten = 0;
    for kind in Kind::ALL {
        for seed in 0..300 {
            let clock = ManualClock::new();
            let store = || MemoryStore::builder().clock(clock.clone()).build();
            let (keeping, forgetting) = (store(), store());
            let mut history = History::new(seed, kind, Wildness::Operated);
            let limit: Limit = history.limits()[0].build().unwrap();
            let subject = Subject::of(["k"]);
            let key = Key::new(&subject, &limit);
            let mut last = None;
            for _ in 0..60 {
                let moment = history.next(last.as_ref());
                clock.set(Timestamp::from_micros(moment.at_us));
                forgotten += forgetting.sweep(usize::MAX);
                let kept = ask(&keeping, key, moment.ask);
                assert_eq!(
                    ask(&forgetting, key, moment.ask),
                    kept,
                    "{kind:?} seed {seed} {moment:?}"
                );
                last = Some(kept);
            }
        }
    }
    assert!(forgotten > 5000, "only {forgotten} keys were forgotten: the test shows little");
}
