//! A primary that becomes a replica admits nothing, and limits are exact again as soon as there is a primary.

use std::time::{Duration, Instant};

use tollgate::{Plan, Store, StoreErrorKind, Subject};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::server::{Flavor, Sentinels, Server};

use crate::fixture::{block_on, builder, builder_at, in_order, plan};
use crate::tally::{LOST, Tally, assert_exact, century_window, meanwhile, sync};

const LIMIT: u64 = 1000;

/// Makes the server a replica of an unreachable primary. It keeps its data and connections.
fn demote(server: &Server) {
    assert_eq!(server.raw().call(&["REPLICAOF", "127.0.0.1", "1"]).text(), "OK");
}

fn promote(server: &Server) {
    assert_eq!(server.raw().call(&["REPLICAOF", "NO", "ONE"]).text(), "OK");
}

/// Takes a quarter of the limit.
fn take_some(store: &RedisStore, request: &Plan<'_>) -> Tally {
    let mut tally = Tally::default();
    (0..LIMIT / 4).for_each(|_| tally.take(store, request));
    assert_eq!((tally.admitted, tally.failed), (LIMIT / 4, 0));
    tally
}

/// Asserts that single and concurrent takes fail with the reason.
fn assert_all_fail(store: &RedisStore, request: &Plan<'_>) {
    for _ in 0..5 {
        for result in block_on(in_order((0..20).map(|_| store.take(request)))) {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert!(error.is_transient());
            assert!(error.to_string().contains("is a read-only replica"), "{error}");
        }
    }
}

fn demote_under_load(flavor: Flavor, scripting: Scripting) {
    let server = Server::start(flavor);
    let store = builder(&server).scripting(scripting).max_refusals(0).build();
    let (subject, limit) = (Subject::of(["k"]), century_window(LIMIT));
    let request = plan(&subject, &limit, 1);
    let before = take_some(&store, &request);
    let meanwhile = meanwhile(&store, &request, || {
        demote(&server);
        assert_all_fail(&store, &request);
        promote(&server);
        // The very next take, without a tolerance in time.
        assert!(block_on(store.take(&request)).unwrap().is_allowed());
    });
    let mut after = Tally::default();
    after.use_up(&store, &request);
    assert_eq!(after.failed, 0);
    // Refused takes have not run, so no quota is lost.
    assert_eq!(before.admitted + meanwhile.admitted + 1 + after.admitted, LIMIT);
    assert_exact(&store);
}

#[test]
fn redis_admits_nothing_while_it_is_a_replica() {
    demote_under_load(Flavor::Redis, Scripting::Script);
    demote_under_load(Flavor::Redis, Scripting::Function);
}

#[test]
fn valkey_admits_nothing_while_it_is_a_replica() {
    demote_under_load(Flavor::Valkey, Scripting::Auto);
}

/// The sentinels detect the replica and promote another server, which has all admissions.
fn replace_under_load(flavor: Flavor) {
    let all = Sentinels::start(flavor);
    let store = builder_at(&all.url()).timeout(Duration::from_secs(10)).max_refusals(0).build();
    let (subject, limit) = (Subject::of(["k"]), century_window(LIMIT));
    let request = plan(&subject, &limit, 1);
    let mut tally = take_some(&store, &request);
    let old = all.primary();
    sync(old, "mark", "2");
    demote(old);
    let error = block_on(store.take(&request)).unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("is a read-only replica"),
        "{error}"
    );
    let meanwhile = meanwhile(&store, &request, || {
        let _ = all.wait_for_new_primary(old);
        let promoted = Instant::now();
        // An attempt that began before may fail, the next may not. Each takes at most 1 s after a delay of 0.1 s,
        // so at most 2 s in total.
        block_on(async {
            if store.connect().await.is_err() {
                store.connect().await.unwrap();
            }
        });
        println!("{flavor}: exact {:?} after the promotion", promoted.elapsed());
    });
    assert!(meanwhile.failed > 0, "no take failed in between");
    tally.use_up(&store, &request);
    let admitted = tally.admitted + meanwhile.admitted;
    assert!(admitted <= LIMIT && admitted + LOST >= LIMIT, "{admitted}");
    assert_eq!(tally.failed, 0);
    assert_exact(&store);
}

#[test]
fn store_follows_the_successor_of_a_demoted_redis() {
    replace_under_load(Flavor::Redis);
}

#[test]
fn store_follows_the_successor_of_a_demoted_valkey() {
    replace_under_load(Flavor::Valkey);
}
