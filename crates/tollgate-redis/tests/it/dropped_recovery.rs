//! A recovery that is dropped loses no debit: those that wait in this process are sent without it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use tokio::runtime::Builder;
use tollgate::{FallbackStore, Key, Store, Subject};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::{MAX_WAIT, eventually};

use crate::fixture::{builder, plan};
use crate::tally::century_window;

const KEYS: usize = 300;

#[test]
fn dropped_recovery_sends_all_debits() {
    let server = Server::start(Flavor::Redis);
    // The connection has no turn between the poll that queues the debits and the drop.
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let redis = builder(&server).max_refusals(0).build();
    let store = FallbackStore::builder(redis.clone()).open_for(MAX_WAIT).build();
    let limit = century_window(10);
    let subjects: Vec<Subject> = (0..KEYS).map(|nth| Subject::of([format!("s{nth}")])).collect();
    runtime.block_on(async {
        redis.connect().await.unwrap();
        store.open_breaker();
        for subject in &subjects {
            assert!(store.take(&plan(subject, &limit, 3)).await.unwrap().is_allowed());
        }
        assert_eq!(store.keys_to_replay(), KEYS);
        let mut recovery = pin!(store.maintain());
        poll_fn(|context| {
            assert!(recovery.as_mut().poll(context).is_pending(), "the debits have no reply yet");
            if store.keys_to_replay() == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    });
    assert_eq!(store.keys_to_replay(), 0, "a sent debit is not sent again");
    eventually("Redis knows all debits", || {
        runtime.block_on(async {
            let mut known = 0;
            for subject in &subjects {
                let used = redis.stats(&Key::new(subject, &limit)).await.unwrap();
                known += usize::from(used.count() == 3);
            }
            known == KEYS
        })
    });
}
