//! With sentinels, the store follows the primary, and a failover admits no more than necessary.

use std::time::Duration;

use tollgate::{Store, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Sentinels, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, plan};
use crate::tally::{LOST, Tally, assert_exact, century_window, meanwhile, sync};

const LIMIT: u64 = 400;

fn store(url: &str) -> RedisStore {
    let builder = RedisStore::builder(url.parse().unwrap());
    builder.timeout(Duration::from_secs(10)).max_refusals(0).build()
}

#[test]
fn failover_under_load_admits_only_unreplicated_takes_again() {
    let all = Sentinels::start(Flavor::Redis);
    let store = store(&all.url());
    block_on(store.connect()).unwrap();
    let (subject, limit) = (Subject::of(["k"]), century_window(LIMIT));
    let request = plan(&subject, &limit, 1);
    let mut before = Tally::default();
    (0..LIMIT / 4).for_each(|_| before.take(&store, &request));
    assert_eq!((before.admitted, before.failed), (LIMIT / 4, 0));
    sync(all.primary(), "mark", "2");
    let meanwhile = meanwhile(&store, &request, || {
        let _ = all.failover();
    });
    let mut after = Tally::default();
    after.use_up(&store, &request);
    let admitted = before.admitted + meanwhile.admitted + after.admitted;
    assert!(admitted <= LIMIT + meanwhile.admitted && admitted <= 2 * LIMIT, "{admitted}");
    assert!(admitted + LOST >= LIMIT, "{admitted}");
    eventually("the store takes from the new primary", || block_on(store.connect()).is_ok());
    assert_exact(&store);
}

#[test]
fn dead_primary_is_replaced_and_nothing_counts_twice() {
    let all = Sentinels::start(Flavor::Valkey);
    let store = store(&all.url());
    let (subject, limit) = (Subject::of(["k"]), century_window(LIMIT));
    let request = plan(&subject, &limit, 1);
    let mut tally = Tally::default();
    (0..LIMIT / 2).for_each(|_| tally.take(&store, &request));
    assert_eq!(tally.failed, 0);
    sync(all.primary(), "mark", "2");
    let old = all.kill_primary();
    // No takes happened meanwhile, so the replicas have everything.
    tally.use_up(&store, &request);
    assert!(tally.admitted <= LIMIT && tally.admitted + LOST >= LIMIT, "{tally:?}");
    let new = all.wait_for_new_primary(old);
    assert!(new.raw().call(&["DBSIZE"]).int() >= 1, "it has the counter");
    assert_exact(&store);
    // The old primary restarts empty and stays a primary until the sentinels demote it. The store does not use it.
    old.restart();
    for _ in 0..20 {
        assert!(!block_on(store.take(&request)).unwrap().is_allowed());
    }
    all.wait_ok();
    assert!(!block_on(store.take(&request)).unwrap().is_allowed());
}

/// The replicas are disconnected before the last admissions: exactly those are admitted again.
#[test]
fn only_unreplicated_admissions_are_admitted_again() {
    const LAG: u64 = LIMIT / 4;
    let all = Sentinels::start(Flavor::Redis);
    let store = store(&all.url());
    let (subject, limit) = (Subject::of(["k"]), century_window(LIMIT));
    let request = plan(&subject, &limit, 1);
    let mut tally = Tally::default();
    (0..LIMIT / 2).for_each(|_| tally.take(&store, &request));
    let primary = all.primary();
    sync(primary, "mark", "2");
    let replicas = all.replicas();
    replicas.iter().for_each(|replica| replica.hang());
    primary.raw().call(&["CLIENT", "KILL", "TYPE", "replica"]);
    (0..LAG).for_each(|_| tally.take(&store, &request));
    assert_eq!((tally.admitted, tally.failed), (LIMIT / 2 + LAG, 0));
    let old = all.kill_primary();
    replicas.iter().for_each(|replica| replica.resume());
    tally.use_up(&store, &request);
    let most = LIMIT + LAG;
    assert!(tally.admitted <= most && tally.admitted + LOST >= most, "{tally:?}");
    let _ = all.wait_for_new_primary(old);
    assert_exact(&store);
}

#[test]
fn servers_that_are_not_the_primary_are_rejected() {
    let all = Sentinels::start(Flavor::Redis);
    let replicas = all.replicas();
    let connect_error = |kind: StoreErrorKind, url: &str| {
        let error = block_on(store(url).connect()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        error.to_string()
    };
    // A failover ends by itself. A wrong address does not.
    let (unavailable, rejected) = (StoreErrorKind::Unavailable, StoreErrorKind::Misconfigured);
    let port = replicas[0].port();
    // The sentinels monitor a replica as the primary "wrong".
    for sentinel in all.sentinels() {
        let words = ["SENTINEL", "MONITOR", "wrong", "127.0.0.1", &port.to_string(), "3"];
        assert!(!sentinel.raw().call(&words).is_error());
    }
    let error = connect_error(unavailable, &all.url().replace("mymaster", "wrong"));
    assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
    assert!(error.contains("is a replica, but a sentinel names it as the primary"), "{error}");

    let error = connect_error(rejected, &all.url().replace("mymaster", "missing"));
    assert!(error.contains("monitors no primary named \"missing\""), "{error}");

    let error = connect_error(rejected, &replicas[0].url());
    assert!(error.contains("is a replica: use the address of the primary"), "{error}");
    let error = connect_error(rejected, &all.sentinels()[0].url());
    assert!(error.contains("is a sentinel: use a redis+sentinel://"), "{error}");
    let error = connect_error(rejected, &format!("redis+sentinel://127.0.0.1:{port}/mymaster"));
    assert!(error.contains("sentinel"), "{error}");

    // One sentinel is sufficient.
    all.sentinels()[..2].iter().for_each(Server::kill);
    block_on(store(&all.url()).connect()).unwrap();
    all.sentinels()[2].kill();
    connect_error(unavailable, &all.url());
}
