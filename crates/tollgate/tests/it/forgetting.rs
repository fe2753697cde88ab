//! Expired equals never seen: a store that forgets at every chance answers as one that never does.

use tollgate::{Key, Limit, ManualClock, MemoryStore, Subject, Timestamp};
use tollgate_testkit::history::{History, HistoryLevel};
use tollgate_testkit::spec::Kind;

use crate::asking::ask;

#[test]
fn a_store_that_forgets_answers_as_one_that_does_not() {
    let mut forgotten = 0;
    for kind in Kind::ALL {
        for seed in 0..300 {
            let clock = ManualClock::new();
            let store = || MemoryStore::builder().clock(clock.clone()).build();
            let (keeping, forgetting) = (store(), store());
            let mut history = History::new(seed, kind, HistoryLevel::Operations);
            let limit: Limit = history.limits()[0].build().unwrap();
            let subject = Subject::of(["k"]);
            let key = Key::new(&subject, &limit);
            let mut last = None;
            for _ in 0..60 {
                let moment = history.next(last.as_ref());
                clock.set(Timestamp::from_micros(moment.at_us));
                forgotten += forgetting.sweep(usize::MAX);
                let kept = ask(&keeping, key, moment.operation);
                assert_eq!(
                    ask(&forgetting, key, moment.operation),
                    kept,
                    "{kind:?} seed {seed} {moment:?}"
                );
                last = Some(kept);
            }
        }
    }
    assert!(forgotten > 5000, "only {forgotten} keys were forgotten: the test shows little");
}
