//! Two primaries at once: each admits at most the limit, and one that requires a replica admits nothing.

use std::thread;
use std::time::Duration;

use tollgate::{Plan, Store, StoreErrorKind, Subject};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::{Flavor, Sentinels, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, builder_at, plan};
use crate::tally::{Tally, assert_exact, century_window, sync};

const LIMIT: u64 = 2000;

fn store(url: &str) -> RedisStore {
    builder_at(url).timeout(Duration::from_secs(10)).max_refusals(0).build()
}

/// Takes a quarter of the limit.
fn take_some(store: &RedisStore, request: &Plan<'_>) -> u64 {
    let mut tally = Tally::default();
    (0..LIMIT / 4).for_each(|_| tally.take(store, request));
    assert_eq!((tally.admitted, tally.failed), (LIMIT / 4, 0));
    tally.admitted
}

/// Takes the rest of the limit without an error.
fn take_the_rest(store: &RedisStore, request: &Plan<'_>) -> u64 {
    let mut tally = Tally::default();
    tally.use_up(store, request);
    assert_eq!(tally.failed, 0);
    tally.admitted
}

/// The old primary hangs until another is promoted, and resumes while the sentinels hang.
#[test]
fn both_sides_of_a_split_admit_at_most_the_limit() {
    let all = Sentinels::start(Flavor::Redis);
    let old = all.primary();
    let (isolated, others) = (store(&old.url()), store(&all.url()));
    let (subject, limit) = (Subject::of(["k"]), century_window(LIMIT));
    let request = plan(&subject, &limit, 1);
    let before = take_some(&isolated, &request);
    sync(old, "mark", "2");
    old.hang();
    let new = all.wait_for_new_primary(old);
    eventually("the others have the new primary", || block_on(others.connect()).is_ok());
    all.keep_primary();
    all.sentinels().iter().for_each(Server::hang);
    old.resume();
    let [mine, theirs] = thread::scope(|scope| {
        let sides = [&isolated, &others].map(|side| scope.spawn(|| take_the_rest(side, &request)));
        sides.map(|side| side.join().unwrap())
    });
    assert_eq!([before + mine, before + theirs], [LIMIT; 2]);
    // The split ends with one primary.
    all.sentinels().iter().for_each(Server::resume);
    all.wait_ok();
    assert_eq!(all.primary().port(), new.port());
    let another = Subject::of(["unused"]);
    let error = block_on(isolated.take(&plan(&another, &limit, 1))).unwrap_err();
    assert!(error.to_string().contains("is a read-only replica"), "{error}");
    assert!(!block_on(others.take(&request)).unwrap().is_allowed());
    assert_exact(&others);
}

/// Returns a primary that requires one replica, the proxy between them, and the replica.
fn primary_with_replica(flavor: Flavor) -> (Server, Proxy, Server) {
    let wants = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"];
    let primary = Server::builder(flavor).args(wants).arg("--repl-diskless-sync-delay").arg("0");
    let (primary, replica) = (primary.start(), Server::start(flavor));
    let between = Proxy::start(primary.port());
    replica.raw().call(&["REPLICAOF", "127.0.0.1", &between.port().to_string()]);
    eventually("the replica is connected", || {
        let info = primary.raw().call(&["INFO", "replication"]);
        info.text().lines().any(|line| line == "min_slaves_good_slaves:1")
    });
    (primary, between, replica)
}

/// Returns the admissions of an isolated primary until it refuses writes.
fn take_until_isolated(store: &RedisStore, request: &Plan<'_>) -> u64 {
    let mut tally = Tally::default();
    eventually("the primary refuses writes", || {
        tally.take(store, request);
        tally.failed > 0
    });
    tally.admitted
}

fn cut_off(flavor: Flavor, scripting: Scripting) {
    let (old, between, new) = primary_with_replica(flavor);
    let isolated = builder_at(&old.url()).scripting(scripting).max_refusals(0).build();
    let (subject, limit) = (Subject::of(["k"]), century_window(LIMIT));
    let request = plan(&subject, &limit, 1);
    let before = take_some(&isolated, &request);
    sync(&old, "mark", "1");
    between.set(Fault::Blackhole);
    let admitted_meanwhile = take_until_isolated(&isolated, &request);
    println!("{flavor}: {admitted_meanwhile} were admitted by the isolated primary");
    assert!(
        before + admitted_meanwhile < LIMIT,
        "the primary used up the limit before it refused writes"
    );
    assert_eq!(new.raw().call(&["REPLICAOF", "NO", "ONE"]).text(), "OK");
    for name in ["k", "unused"] {
        let subject = Subject::of([name]);
        for _ in 0..20 {
            let error = block_on(isolated.take(&plan(&subject, &limit, 1))).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert!(error.is_transient());
            assert!(error.to_string().contains("too few replicas are connected"), "{error}");
        }
    }
    // Together both sides have admitted the limit and the admissions before the old primary refused.
    let others = store(&new.url());
    assert_eq!(before + take_the_rest(&others, &request), LIMIT);
    assert_exact(&others);
}

#[test]
fn isolated_redis_that_requires_a_replica_admits_nothing() {
    cut_off(Flavor::Redis, Scripting::Script);
    cut_off(Flavor::Redis, Scripting::Function);
}

#[test]
fn isolated_valkey_that_requires_a_replica_admits_nothing() {
    cut_off(Flavor::Valkey, Scripting::Auto);
}
