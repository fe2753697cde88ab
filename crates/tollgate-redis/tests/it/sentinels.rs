//! A store that sentinels lead follows the primary by itself, and a failover costs what it must.

use std::time::Duration;

use tollgate::{Store, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Sentinels, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, plan};
use crate::tally::{LOST, Tally, assert_exact, lasting, meanwhile, sync};

const LIMIT: u64 = 400;

fn store(url: &str) -> RedisStore {
    let builder = RedisStore::builder(url.parse().unwrap());
    builder.timeout(Duration::from_secs(10)).max_refusals(0).build()
}

#[test]
fn a_failover_under_load_admits_no_more_than_was_granted_meanwhile() {
    let all = Sentinels::start(Flavor::Redis);
    let store = store(&all.url());
    block_on(store.connect()).unwrap();
    let (subject, limit) = (Subject::of(["k"]), lasting(LIMIT));
    let ask = plan(&subject, &limit, 1);
    let mut before = Tally::default();
    (0..LIMIT / 4).for_each(|_| before.take(&store, &ask));
    assert_eq!((before.admitted, before.failed), (LIMIT / 4, 0));
    sync(all.primary(), "mark", "2");
    let meanwhile = meanwhile(&store, &ask, || {
        let _ = all.failover();
    });
    let mut after = Tally::default();
    after.use_up(&store, &ask);
    let admitted = before.admitted + meanwhile.admitted + after.admitted;
    assert!(admitted <= LIMIT + meanwhile.admitted && admitted <= 2 * LIMIT, "{admitted}");
    assert!(admitted + LOST >= LIMIT, "{admitted}");
    eventually("the store takes from the new primary", || block_on(store.connect()).is_ok());
    assert_exact(&store);
}

#[test]
fn a_dead_primary_is_replaced_and_nothing_is_counted_twice() {
    let all = Sentinels::start(Flavor::Valkey);
    let store = store(&all.url());
    let (subject, limit) = (Subject::of(["k"]), lasting(LIMIT));
    let ask = plan(&subject, &limit, 1);
    let mut tally = Tally::default();
    (0..LIMIT / 2).for_each(|_| tally.take(&store, &ask));
    assert_eq!(tally.failed, 0);
    sync(all.primary(), "mark", "2");
    let old = all.kill_primary();
    // Nobody asked meanwhile, so the replicas had everything.
    tally.use_up(&store, &ask);
    assert!(tally.admitted <= LIMIT && tally.admitted + LOST >= LIMIT, "{tally:?}");
    let new = all.wait_for_new_primary(old);
    assert!(new.raw().call(&["DBSIZE"]).int() >= 1, "it has the counter");
    assert_exact(&store);
    // The old one comes back as a primary that is empty, until the sentinels have told it otherwise. Nobody
    // who follows them asks it.
    old.restart();
    for _ in 0..20 {
        assert!(!block_on(store.take(&ask)).unwrap().is_allowed());
    }
    all.wait_ok();
    assert!(!block_on(store.take(&ask)).unwrap().is_allowed());
}

/// The replicas are cut off before the last grants: exactly those are forgotten, and no more.
#[test]
fn what_lagging_replicas_have_not_heard_is_all_that_is_admitted_again() {
    const LAG: u64 = LIMIT / 4;
    let all = Sentinels::start(Flavor::Redis);
    let store = store(&all.url());
    let (subject, limit) = (Subject::of(["k"]), lasting(LIMIT));
    let ask = plan(&subject, &limit, 1);
    let mut tally = Tally::default();
    (0..LIMIT / 2).for_each(|_| tally.take(&store, &ask));
    let primary = all.primary();
    sync(primary, "mark", "2");
    let replicas = all.replicas();
    replicas.iter().for_each(|replica| replica.hang());
    primary.raw().call(&["CLIENT", "KILL", "TYPE", "replica"]);
    (0..LAG).for_each(|_| tally.take(&store, &ask));
    assert_eq!((tally.admitted, tally.failed), (LIMIT / 2 + LAG, 0));
    let old = all.kill_primary();
    replicas.iter().for_each(|replica| replica.resume());
    tally.use_up(&store, &ask);
    let most = LIMIT + LAG;
    assert!(tally.admitted <= most && tally.admitted + LOST >= most, "{tally:?}");
    let _ = all.wait_for_new_primary(old);
    assert_exact(&store);
}

#[test]
fn who_is_not_the_primary_is_refused_with_the_reason() {
    let all = Sentinels::start(Flavor::Redis);
    let replicas = all.replicas();
    let told = |url: &str| {
        let error = block_on(store(url).connect()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        error.to_string()
    };
    let port = replicas[0].port();
    // They call one primary that is none.
    for sentinel in all.sentinels() {
        let words = ["SENTINEL", "MONITOR", "wrong", "127.0.0.1", &port.to_string(), "3"];
        assert!(!sentinel.raw().call(&words).is_error());
    }
    let error = told(&all.url().replace("mymaster", "wrong"));
    assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
    assert!(error.contains("is a replica, though a sentinel calls it the primary"), "{error}");

    let error = told(&all.url().replace("mymaster", "nobody"));
    assert!(error.contains("knows no primary called \"nobody\""), "{error}");

    let error = told(&replicas[0].url());
    assert!(error.contains("is a replica: the address must be that of the primary"), "{error}");
    let error = told(&all.sentinels()[0].url());
    assert!(error.contains("is a sentinel: the address must begin with"), "{error}");
    let error = told(&format!("redis+sentinel://127.0.0.1:{port}/mymaster"));
    assert!(error.contains("sentinel"), "{error}");

    // Sentinels that are gone do not matter while one is there.
    all.sentinels()[..2].iter().for_each(Server::kill);
    block_on(store(&all.url()).connect()).unwrap();
    all.sentinels()[2].kill();
    told(&all.url());
}
