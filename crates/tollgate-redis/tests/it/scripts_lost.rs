//! A server that forgets its scripts all the time: nobody notices.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tollgate::{Key, Limit, Store, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::pause;

use crate::fixture::{block_on, in_order, of_each_kind, patient, plan};

const TASKS: u64 = 16;
const COUNT: u64 = 600;
/// While one limit is used up the scripts are lost at least so often.
const FLUSHES: u64 = 30;

/// Takes until there was enough of everything; how many passed.
async fn take_on(store: &RedisStore, subject: &Subject, limit: &Limit, flushes: &AtomicU64) -> u64 {
    let (plan, until) = (plan(subject, limit, 1), flushes.load(Ordering::SeqCst) + FLUSHES);
    let (mut passed, mut taken) = (0, 0);
    while taken <= COUNT / TASKS || flushes.load(Ordering::SeqCst) < until {
        passed += u64::from(store.take(&plan).await.unwrap().is_allowed());
        // The script that can do everything is lost as well.
        store.refund(&crate::fixture::plan(subject, limit, 0)).await.unwrap();
        taken += 1;
    }
    passed
}

#[test]
fn a_hundred_script_flushes_a_second_are_not_noticed() {
    let server = Server::start(Flavor::Redis);
    let store = patient(&server).max_refusals(0).build();
    let (flushes, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut raw = server.raw();
            while !is_done.load(Ordering::SeqCst) {
                raw.call(&["SCRIPT", "FLUSH"]);
                flushes.fetch_add(1, Ordering::SeqCst);
                pause();
            }
        });
        let subject = Subject::of(["k"]);
        for limit in of_each_kind(COUNT) {
            let tasks = (0..TASKS).map(|_| take_on(&store, &subject, &limit, &flushes));
            let passed: u64 = block_on(in_order(tasks)).into_iter().sum();
            let key = Key::new(&subject, &limit);
            let left = block_on(store.stats(&key)).unwrap().remaining();
            // Before the assertions: who flushes must end in any case.
            is_done.store(passed != COUNT || left != 0, Ordering::SeqCst);
            assert_eq!((passed, left), (COUNT, 0), "{}", limit.algorithm());
        }
        is_done.store(true, Ordering::SeqCst);
    });
}
