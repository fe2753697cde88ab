//! Two primaries at once: each side admits the limit at most, and one that wants to be followed admits nothing.

use std::thread;
use std::time::Duration;

use tollgate::{Plan, Store, StoreErrorKind, Subject};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::server::{Flavor, Sentinels, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, patient_at, plan};
use crate::tally::{Tally, assert_exact, lasting, sync};

const LIMIT: u64 = 2000;

fn store(url: &str) -> RedisStore {
    patient_at(url).timeout(Duration::from_secs(10)).max_refusals(0).build()
}

/// A quarter is taken while all is well.
fn take_some(store: &RedisStore, ask: &Plan<'_>) -> u64 {
    let mut tally = Tally::default();
    (0..LIMIT / 4).for_each(|_| tally.take(store, ask));
    assert_eq!((tally.admitted, tally.failed), (LIMIT / 4, 0));
    tally.admitted
}

/// What is left is taken, and nothing fails.
fn take_the_rest(store: &RedisStore, ask: &Plan<'_>) -> u64 {
    let mut tally = Tally::default();
    tally.use_up(store, ask);
    assert_eq!(tally.failed, 0);
    tally.admitted
}

/// The primary stops until another is in its place, and goes on where no sentinel tells it so.
#[test]
fn two_sides_of_a_split_admit_the_limit_each_and_no_more() {
    let all = Sentinels::start(Flavor::Redis);
    let old = all.primary();
    let (lonely, others) = (store(&old.url()), store(&all.url()));
    let (subject, limit) = (Subject::of(["k"]), lasting(LIMIT));
    let ask = plan(&subject, &limit, 1);
    let before = take_some(&lonely, &ask);
    sync(old, "mark", "2");
    old.hang();
    let new = all.wait_for_new_primary(old);
    eventually("the others have the new primary", || block_on(others.connect()).is_ok());
    all.keep_primary();
    all.sentinels().iter().for_each(Server::hang);
    old.resume();
    let [mine, theirs] = thread::scope(|scope| {
        let sides = [&lonely, &others].map(|side| scope.spawn(|| take_the_rest(side, &ask)));
        sides.map(|side| side.join().unwrap())
    });
    assert_eq!([before + mine, before + theirs], [LIMIT; 2]);
    // They are together again, and there is one primary.
    all.sentinels().iter().for_each(Server::resume);
    all.wait_ok();
    assert_eq!(all.primary().port(), new.port());
    let another = Subject::of(["nobody"]);
    let error = block_on(lonely.take(&plan(&another, &limit, 1))).unwrap_err();
    assert!(error.to_string().contains("is a read-only replica"), "{error}");
    assert!(!block_on(others.take(&ask)).unwrap().is_allowed());
    assert_exact(&others);
}

/// A primary that wants one replica, with one, and the network between them.
fn followed(flavor: Flavor) -> (Server, Proxy, Server) {
    let wants = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"];
    let primary = Server::builder(flavor).args(wants).arg("--repl-diskless-sync-delay").arg("0");
    let (primary, replica) = (primary.start(), Server::start(flavor));
    let between = Proxy::start(primary.port());
    replica.raw().call(&["REPLICAOF", "127.0.0.1", &between.port().to_string()]);
    eventually("it is followed", || {
        let told = primary.raw().call(&["INFO", "replication"]);
        told.text().lines().any(|line| line == "min_slaves_good_slaves:1")
    });
    (primary, between, replica)
}

/// What a primary still admits of a limit after it was cut off, until it has noticed.
fn until_noticed(store: &RedisStore, ask: &Plan<'_>) -> u64 {
    let mut tally = Tally::default();
    eventually("it has noticed", || {
        tally.take(store, ask);
        tally.failed > 0
    });
    tally.admitted
}

fn cut_off(flavor: Flavor, scripting: Scripting) {
    let (old, between, new) = followed(flavor);
    let lonely = patient_at(&old.url()).scripting(scripting).max_refusals(0).build();
    let (subject, limit) = (Subject::of(["k"]), lasting(LIMIT));
    let ask = plan(&subject, &limit, 1);
    let before = take_some(&lonely, &ask);
    sync(&old, "mark", "1");
    between.set(Fault::Blackhole);
    let unnoticed = until_noticed(&lonely, &ask);
    println!("{flavor}: {unnoticed} were admitted by the old primary until it noticed");
    assert!(before + unnoticed < LIMIT, "the limit was all that stopped it");
    assert_eq!(new.raw().call(&["REPLICAOF", "NO", "ONE"]).text(), "OK");
    for name in ["k", "nobody"] {
        let subject = Subject::of([name]);
        for _ in 0..20 {
            let error = block_on(lonely.take(&plan(&subject, &limit, 1))).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert!(error.is_transient());
            assert!(error.to_string().contains("too few replicas are connected"), "{error}");
        }
    }
    // So both sides together have admitted the limit, and what the old primary did until it noticed.
    let others = store(&new.url());
    assert_eq!(before + take_the_rest(&others, &ask), LIMIT);
    assert_exact(&others);
}

#[test]
fn a_redis_that_wants_a_replica_admits_nothing_once_it_is_alone() {
    cut_off(Flavor::Redis, Scripting::Script);
    cut_off(Flavor::Redis, Scripting::Function);
}

#[test]
fn a_valkey_that_wants_a_replica_admits_nothing_once_it_is_alone() {
    cut_off(Flavor::Valkey, Scripting::Auto);
}
