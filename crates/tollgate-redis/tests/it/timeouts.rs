//! Every wait is bounded, and a cancelled request takes nothing.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tollgate::{Key, Limit, Quota, Store, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{address, block_on, builder, in_order, plan};
use crate::tally::century_window;

const TIMEOUT: Duration = Duration::from_millis(100);
/// Margin for a busy machine.
const MARGIN: Duration = Duration::from_secs(10);
const CALLERS: u64 = 500;

fn daily(count: u64) -> Limit {
    Limit::token_bucket(Quota::per_day(count)).unwrap()
}

/// Asserts that many concurrent takes fail in time. Returns the kinds of their errors.
fn all_fail(store: &RedisStore, subject: &Subject) -> Vec<StoreErrorKind> {
    let (limit, started) = (daily(1000), Instant::now());
    let request = plan(subject, &limit, 1);
    let results = block_on(in_order((0..CALLERS).map(|_| store.take(&request))));
    let elapsed = started.elapsed();
    assert!(elapsed < TIMEOUT + MARGIN, "the callers waited for {elapsed:?}");
    results
        .into_iter()
        .map(|result| result.expect_err("the server does not reply").kind())
        .collect()
}

/// Asserts that exactly the limit of an unused key is admitted, as soon as the store is available.
fn assert_exact(store: &RedisStore, name: &str) {
    let (subject, limit) = (Subject::of([name]), daily(50));
    eventually("the store is available again", || block_on(store.connect()).is_ok());
    let request = plan(&subject, &limit, 1);
    let passed = (0..60).map(|_| block_on(store.take(&request)).unwrap().is_allowed());
    assert_eq!(passed.filter(|passed| *passed).count(), 50);
}

/// A store with a short timeout, for calls that may fail.
fn short_timeout_store(server: &Server) -> RedisStore {
    RedisStore::builder(address(server)).timeout(TIMEOUT).max_refusals(0).build()
}

#[test]
fn hung_server_costs_at_most_the_timeout() {
    let server = Server::start(Flavor::Redis);
    let store = short_timeout_store(&server);
    eventually("there is a connection", || block_on(store.connect()).is_ok());
    server.hang();
    for round in 0..3 {
        for kind in all_fail(&store, &Subject::of(["k"])) {
            use StoreErrorKind::{Lost, Timeout, Unavailable};
            let is_right = matches!(kind, Timeout | Lost | Unavailable);
            assert!(is_right, "{kind:?} in round {round}");
        }
    }
    server.resume();
    assert_exact(&builder(&server).build(), "others");
    eventually("the same store is available again", || block_on(store.connect()).is_ok());
}

#[test]
fn killed_server_is_unavailable_until_restarted() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).max_refusals(0).build();
    assert_exact(&store, "before");
    server.kill();
    for kind in all_fail(&store, &Subject::of(["k"])) {
        assert!(matches!(kind, StoreErrorKind::Unavailable | StoreErrorKind::Lost));
    }
    server.restart();
    assert_exact(&store, "after");
    // The server restarted empty.
    assert_exact(&store, "before");
}

/// Polls once.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn requests_beyond_the_queue_fail_immediately() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).max_refusals(0).max_waiting(4).build();
    block_on(store.connect()).unwrap();
    server.hang();
    let (subject, limit) = (Subject::of(["k"]), daily(100));
    let request = plan(&subject, &limit, 1);
    block_on(async {
        let mut pending: Vec<_> = (0..20).map(|_| Box::pin(store.take(&request))).collect();
        let results: Vec<_> = pending.iter_mut().map(|future| poll(future.as_mut())).collect();
        // Two are in flight, four wait.
        let ready = results.iter().filter(|result| result.is_ready()).count();
        assert_eq!(ready, 14);
        for result in results {
            if let Poll::Ready(result) = result {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), StoreErrorKind::Overloaded);
                assert!(error.to_string().contains("too many"), "{error}");
            }
        }
        server.resume();
        pending.truncate(6);
        let results = in_order(pending.into_iter()).await;
        let left: Vec<_> = results.into_iter().map(|one| one.unwrap().remaining()).collect();
        assert_eq!(left, [99, 98, 97, 96, 95, 94].map(Some));
    });
}

#[test]
fn cancelled_requests_are_not_sent() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).max_refusals(0).build();
    block_on(store.connect()).unwrap();
    server.hang();
    let (subject, limit) = (Subject::of(["k"]), daily(100));
    let request = plan(&subject, &limit, 1);
    block_on(async {
        for _ in 0..20 {
            let future = pin!(store.take(&request));
            assert!(poll(future).is_pending());
        }
    });
    server.resume();
    // Two were sent; the others were dropped before.
    let used = || block_on(store.stats(&Key::new(&subject, &limit))).unwrap().count();
    assert_eq!(used(), 2);
    assert_eq!(block_on(store.take(&request)).unwrap().remaining(), Some(97));
}

/// Callers whose request started a call, or is the first of a batch, may go away.
#[test]
fn callers_behind_cancelled_requests_get_their_replies() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).max_refusals(0).build();
    block_on(store.connect()).unwrap();
    server.hang();
    let (subject, limit) = (Subject::of(["k"]), daily(100));
    let request = plan(&subject, &limit, 1);
    block_on(async {
        let mut pending: Vec<_> = (0..6).map(|_| Box::pin(store.take(&request))).collect();
        for future in &mut pending {
            assert!(poll(future.as_mut()).is_pending());
        }
        // Two are sent; the third is the first that waits.
        let waiting = pending.split_off(3);
        drop(pending);
        server.resume();
        let results = in_order(waiting.into_iter()).await;
        let left: Vec<_> = results.into_iter().map(|one| one.unwrap().remaining()).collect();
        assert_eq!(left, [97, 96, 95].map(Some));
    });
}

/// A timeout that leaves time for slow replies on a busy machine.
const SLOW: Duration = Duration::from_secs(4);

/// Returns a connected store behind a proxy, with the timeout [`SLOW`].
fn store_behind(proxy: &Proxy) -> RedisStore {
    let builder = RedisStore::builder(proxy.url().parse().unwrap()).timeout(SLOW);
    let store = builder.max_refusals(0).build();
    eventually("there is a connection", || block_on(store.connect()).is_ok());
    store
}

/// Plans behind slow calls do not wait for two of them.
#[test]
fn plans_behind_slow_calls_are_decided_in_time() {
    let server = Server::start(Flavor::Redis);
    let proxy = Proxy::start(server.port());
    let store = store_behind(&proxy);
    let (subject, limit) = (Subject::of(["k"]), daily(20));
    let request = plan(&subject, &limit, 1);
    // Loads the program.
    assert!(block_on(store.peek(&request)).unwrap().is_allowed());
    proxy.set(Fault::Delay(SLOW * 5 / 8));
    let started = Instant::now();
    // Two are in flight; the others wait or are sent early.
    let results = block_on(in_order((0..40).map(|_| store.take(&request))));
    let admitted =
        results.into_iter().filter(|result| result.as_ref().unwrap().is_allowed()).count();
    assert_eq!(admitted, 20, "after {:?}", started.elapsed());
}

/// More plans than fit into the calls in flight, for one key.
const BACKLOG: usize = 9000;

/// Runs more takes than can be sent. Returns how many were allowed, and the kinds of the errors.
fn take_backlog(store: &RedisStore, subject: &Subject) -> (usize, Vec<StoreErrorKind>) {
    let limit = century_window(1_000_000);
    let request = plan(subject, &limit, 1);
    let results = block_on(in_order((0..BACKLOG).map(|_| store.take(&request))));
    let allowed = results.iter().filter(|result| result.is_ok()).count();
    let kinds = results.into_iter().filter_map(Result::err).map(|error| error.kind());
    (allowed, kinds.collect())
}

fn count_of(kinds: &[StoreErrorKind], wanted: StoreErrorKind) -> usize {
    kinds.iter().filter(|kind| **kind == wanted).count()
}

/// The backlog of this process is not a failure of Redis, and an expired plan that was not sent takes nothing.
#[test]
fn unsent_plans_are_overloaded_while_redis_replies() {
    let server = Server::start(Flavor::Redis);
    let proxy = Proxy::start(server.port());
    let store = store_behind(&proxy);
    let subject = Subject::of(["k"]);
    let limit = century_window(1_000_000);
    // Loads the program.
    assert!(block_on(store.peek(&plan(&subject, &limit, 1))).unwrap().is_allowed());
    proxy.set(Fault::Delay(SLOW * 7 / 8));
    let (allowed, kinds) = take_backlog(&store, &subject);
    let overloaded = count_of(&kinds, StoreErrorKind::Overloaded);
    let timeouts =
        count_of(&kinds, StoreErrorKind::Timeout) + count_of(&kinds, StoreErrorKind::Lost);
    assert!(allowed > 0 && overloaded > 0, "{allowed} allowed, {overloaded} overloaded");
    assert_eq!(allowed + overloaded + timeouts, BACKLOG, "no plan is unavailable");
    // Plans with a reply and plans without one were sent, and the others were not.
    let truth = builder_of(&server);
    let used = || block_on(truth.stats(&Key::new(&subject, &limit))).unwrap().count();
    assert_eq!(used(), u64::try_from(allowed + timeouts).unwrap());
}

fn builder_of(server: &Server) -> RedisStore {
    builder(server).max_refusals(0).build()
}

/// Without replies, an unsent plan fails because of Redis.
#[test]
fn unsent_plans_are_unavailable_while_redis_is_silent() {
    let server = Server::start(Flavor::Redis);
    let builder = RedisStore::builder(address(&server)).timeout(Duration::from_secs(2));
    let store = builder.max_refusals(0).build();
    eventually("there is a connection", || block_on(store.connect()).is_ok());
    server.hang();
    let (allowed, kinds) = take_backlog(&store, &Subject::of(["k"]));
    assert_eq!(allowed, 0);
    assert_eq!(count_of(&kinds, StoreErrorKind::Overloaded), 0, "Redis does not reply");
    assert!(count_of(&kinds, StoreErrorKind::Unavailable) > 0, "some plans were not sent");
    server.resume();
    assert_exact(&builder_of(&server), "others");
}
