//! Dropping expired keys never changes a decision.

use tollgate::{Key, Limit, ManualClock, MemoryStore, Subject, Timestamp};
use tollgate_testkit::history::{History, HistoryLevel};
use tollgate_testkit::spec::Kind;

use crate::operations::apply;

#[test]
fn sweeping_store_decides_like_one_that_never_sweeps() {
    let mut dropped = 0;
    for kind in Kind::ALL {
        for seed in 0..300 {
            let clock = ManualClock::new();
            let store = || MemoryStore::builder().clock(clock.clone()).build();
            let (unswept, swept) = (store(), store());
            let mut history = History::new(seed, kind, HistoryLevel::Operations);
            let limit: Limit = history.limits()[0].build().unwrap();
            let subject = Subject::of(["k"]);
            let key = Key::new(&subject, &limit);
            let mut last = None;
            for _ in 0..60 {
                let step = history.next(last.as_ref());
                clock.set(Timestamp::from_micros(step.at_us));
                dropped += swept.sweep(usize::MAX);
                let expected = apply(&unswept, key, step.operation);
                let answer = apply(&swept, key, step.operation);
                assert_eq!(answer, expected, "{kind:?} seed {seed} {step:?}");
                last = Some(expected);
            }
        }
    }
    assert!(dropped > 5000, "only {dropped} keys were dropped, too few for this test");
}
