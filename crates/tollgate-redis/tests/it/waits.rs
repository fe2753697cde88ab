//! Every wait is bounded, and who waits for nothing takes nothing.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tollgate::{Key, Limit, Quota, Store, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{address, block_on, in_order, patient, plan};

const TIMEOUT: Duration = Duration::from_millis(100);
/// What a busy machine may add to that.
const SLACK: Duration = Duration::from_secs(10);
const CALLERS: u64 = 500;

fn daily(count: u64) -> Limit {
    Limit::token_bucket(Quota::per_day(count)).unwrap()
}

/// Many ask at once; none waits for long, and all are told why. What they are told.
fn all_fail(store: &RedisStore, subject: &Subject) -> Vec<StoreErrorKind> {
    let (limit, began) = (daily(1000), Instant::now());
    let ask = plan(subject, &limit, 1);
    let answers = block_on(in_order((0..CALLERS).map(|_| store.take(&ask))));
    let elapsed = began.elapsed();
    assert!(elapsed < TIMEOUT + SLACK, "they waited for {elapsed:?}");
    answers.into_iter().map(|answer| answer.expect_err("nobody answers").kind()).collect()
}

/// From the first answer on it is exact: a key that nobody knows has all its room.
fn assert_exact(store: &RedisStore, name: &str) {
    let (subject, limit) = (Subject::of([name]), daily(50));
    eventually("the store answers again", || block_on(store.connect()).is_ok());
    let ask = plan(&subject, &limit, 1);
    let passed = (0..60).map(|_| block_on(store.take(&ask)).unwrap().is_allowed());
    assert_eq!(passed.filter(|passed| *passed).count(), 50);
}

/// With a time-out that suits a machine under load, for what must be answered.
fn brief(server: &Server) -> RedisStore {
    RedisStore::builder(address(server)).timeout(TIMEOUT).max_refusals(0).build()
}

#[test]
fn a_hung_server_costs_nobody_more_than_the_timeout() {
    let server = Server::start(Flavor::Redis);
    let store = brief(&server);
    eventually("there is a connection", || block_on(store.connect()).is_ok());
    server.hang();
    for round in 0..3 {
        for kind in all_fail(&store, &Subject::of(["k"])) {
            let is_right = matches!(kind, StoreErrorKind::Timeout | StoreErrorKind::Unavailable);
            assert!(is_right, "{kind:?} in round {round}");
        }
    }
    server.resume();
    assert_exact(&patient(&server).build(), "others");
    eventually("the same store answers", || block_on(store.connect()).is_ok());
}

#[test]
fn a_killed_server_is_told_as_unavailable_and_a_new_one_is_found() {
    let server = Server::start(Flavor::Redis);
    let store = patient(&server).max_refusals(0).build();
    assert_exact(&store, "before");
    server.kill();
    for kind in all_fail(&store, &Subject::of(["k"])) {
        assert_eq!(kind, StoreErrorKind::Unavailable);
    }
    server.restart();
    assert_exact(&store, "after");
    // It came back empty.
    assert_exact(&store, "before");
}

/// Polls once.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn who_would_wait_in_too_long_a_queue_is_told_at_once() {
    let server = Server::start(Flavor::Redis);
    let store = patient(&server).max_refusals(0).max_waiting(4).build();
    block_on(store.connect()).unwrap();
    server.hang();
    let (subject, limit) = (Subject::of(["k"]), daily(100));
    let ask = plan(&subject, &limit, 1);
    block_on(async {
        let mut asked: Vec<_> = (0..20).map(|_| Box::pin(store.take(&ask))).collect();
        let answers: Vec<_> = asked.iter_mut().map(|future| poll(future.as_mut())).collect();
        // Two are on their way, four wait for them.
        let told = answers.iter().filter(|answer| answer.is_ready()).count();
        assert_eq!(told, 14);
        for answer in answers {
            if let Poll::Ready(answer) = answer {
                let error = answer.unwrap_err();
                assert_eq!(error.kind(), StoreErrorKind::Unavailable);
                assert!(error.to_string().contains("too many"), "{error}");
            }
        }
        server.resume();
        asked.truncate(6);
        let answers = in_order(asked.into_iter()).await;
        let left: Vec<_> = answers.into_iter().map(|one| one.unwrap().remaining()).collect();
        assert_eq!(left, [99, 98, 97, 96, 95, 94].map(Some));
    });
}

#[test]
fn what_nobody_waits_for_any_more_is_not_sent() {
    let server = Server::start(Flavor::Redis);
    let store = patient(&server).max_refusals(0).build();
    block_on(store.connect()).unwrap();
    server.hang();
    let (subject, limit) = (Subject::of(["k"]), daily(100));
    let ask = plan(&subject, &limit, 1);
    block_on(async {
        for _ in 0..20 {
            let future = pin!(store.take(&ask));
            assert!(poll(future).is_pending());
        }
    });
    server.resume();
    // The first two had left; the others were dropped before there was a call for them.
    let used = || block_on(store.stats(&Key::new(&subject, &limit))).unwrap().count();
    assert_eq!(used(), 2);
    assert_eq!(block_on(store.take(&ask)).unwrap().remaining(), Some(97));
}

/// Who waits behind calls that take more than half of the time-out is not made to wait for two of them.
#[test]
fn a_crowd_behind_slow_answers_is_answered_in_time() {
    const SLOW: Duration = Duration::from_secs(4);
    let server = Server::start(Flavor::Redis);
    let proxy = Proxy::start(server.port());
    let builder = RedisStore::builder(proxy.url().parse().unwrap()).timeout(SLOW);
    let store = builder.max_refusals(0).build();
    eventually("there is a connection", || block_on(store.connect()).is_ok());
    let (subject, limit) = (Subject::of(["k"]), daily(20));
    let ask = plan(&subject, &limit, 1);
    // So that the server knows the program.
    assert!(block_on(store.peek(&ask)).unwrap().is_allowed());
    proxy.set(Fault::Delay(SLOW * 5 / 8));
    let began = Instant::now();
    // The first two are under way; all others wait for them, or are sent in time.
    let answers = block_on(in_order((0..40).map(|_| store.take(&ask))));
    let admitted =
        answers.into_iter().filter(|answer| answer.as_ref().unwrap().is_allowed()).count();
    assert_eq!(admitted, 20, "after {:?}", began.elapsed());
}
