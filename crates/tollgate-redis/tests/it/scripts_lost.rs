//! A server that loses its scripts all the time causes no errors.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tollgate::{Key, Limit, Store, Subject};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::pause;

use crate::fixture::{block_on, builder, in_order, limits_of_each_algorithm, plan};

const TASKS: u64 = 16;
const COUNT: u64 = 600;
/// Minimum number of flushes while one limit is used up.
const FLUSHES: u64 = 30;

/// Takes until the limit is used up and enough flushes have happened. Returns the number of admissions.
async fn take_repeatedly(
    store: &RedisStore,
    subject: &Subject,
    limit: &Limit,
    flushes: &AtomicU64,
) -> u64 {
    let until = flushes.load(Ordering::SeqCst) + FLUSHES;
    let (one, nothing) = (plan(subject, limit, 1), plan(subject, limit, 0));
    let (mut passed, mut taken) = (0, 0);
    while taken <= COUNT / TASKS || flushes.load(Ordering::SeqCst) < until {
        passed += u64::from(store.take(&one).await.unwrap().is_allowed());
        // Runs the general script too.
        let _ = store.refund(&nothing).await.unwrap();
        taken += 1;
    }
    passed
}

/// Stops the flushing thread, also when an assertion fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn hundred_script_flushes_per_second_cause_no_errors() {
    let server = Server::start(Flavor::Redis);
    flush_under_load(&server, Scripting::Script, "SCRIPT");
    let errors = server.raw().call(&["INFO", "errorstats"]);
    assert!(errors.text().contains("errorstat_NOSCRIPT"), "no call met a lost script");
}

#[test]
fn hundred_function_flushes_per_second_cause_no_errors() {
    let server = Server::start(Flavor::Redis);
    flush_under_load(&server, Scripting::Auto, "FUNCTION");
    let loads = server.raw().call(&["INFO", "commandstats"]);
    assert!(loads.text().contains("cmdstat_function|load"), "no call met a lost function");
}

/// Uses up a limit of each algorithm while the server loses its programs.
fn flush_under_load(server: &Server, scripting: Scripting, what: &str) {
    let store = builder(server).max_refusals(0).scripting(scripting).build();
    let (flushes, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut raw = server.raw();
            while !is_done.load(Ordering::SeqCst) {
                raw.call(&[what, "FLUSH"]);
                flushes.fetch_add(1, Ordering::SeqCst);
                pause();
            }
        });
        let _end = EndOnDrop(&is_done);
        let subject = Subject::of(["k"]);
        for limit in limits_of_each_algorithm(COUNT) {
            let tasks = (0..TASKS).map(|_| take_repeatedly(&store, &subject, &limit, &flushes));
            let passed: u64 = block_on(in_order(tasks)).into_iter().sum();
            let key = Key::new(&subject, &limit);
            let left = block_on(store.stats(&key)).unwrap().remaining();
            assert_eq!((passed, left), (COUNT, 0), "{}", limit.algorithm());
        }
    });
}
