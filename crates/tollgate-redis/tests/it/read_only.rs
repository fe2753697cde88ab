//! A primary that becomes a replica admits nothing, and limits are exact as soon as there is a primary again.

use std::time::{Duration, Instant};

use tollgate::{Plan, Store, StoreErrorKind, Subject};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::server::{Flavor, Sentinels, Server};

use crate::fixture::{block_on, in_order, patient, patient_at, plan};
use crate::tally::{LOST, Tally, assert_exact, lasting, meanwhile, sync};

const LIMIT: u64 = 1000;

/// Makes it a replica of nobody: what it has it keeps, and who is connected stays so.
fn demote(server: &Server) {
    assert_eq!(server.raw().call(&["REPLICAOF", "127.0.0.1", "1"]).text(), "OK");
}

fn promote(server: &Server) {
    assert_eq!(server.raw().call(&["REPLICAOF", "NO", "ONE"]).text(), "OK");
}

/// A quarter is taken while all is well.
fn take_some(store: &RedisStore, ask: &Plan<'_>) -> Tally {
    let mut tally = Tally::default();
    (0..LIMIT / 4).for_each(|_| tally.take(store, ask));
    assert_eq!((tally.admitted, tally.failed), (LIMIT / 4, 0));
    tally
}

/// One by one and together, all are told why.
fn assert_told(store: &RedisStore, ask: &Plan<'_>) {
    for _ in 0..5 {
        for answer in block_on(in_order((0..20).map(|_| store.take(ask)))) {
            let error = answer.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert!(error.is_transient());
            assert!(error.to_string().contains("is a read-only replica"), "{error}");
        }
    }
}

fn demote_under_load(flavor: Flavor, scripting: Scripting) {
    let server = Server::start(flavor);
    let store = patient(&server).scripting(scripting).max_refusals(0).build();
    let (subject, limit) = (Subject::of(["k"]), lasting(LIMIT));
    let ask = plan(&subject, &limit, 1);
    let before = take_some(&store, &ask);
    let meanwhile = meanwhile(&store, &ask, || {
        demote(&server);
        assert_told(&store, &ask);
        promote(&server);
        // Not within two seconds, which a busy machine may need for anything, but the very next.
        assert!(block_on(store.take(&ask)).unwrap().is_allowed());
    });
    let mut after = Tally::default();
    after.use_up(&store, &ask);
    assert_eq!(after.failed, 0);
    // What was refused had not run, so nothing is lost either.
    assert_eq!(before.admitted + meanwhile.admitted + 1 + after.admitted, LIMIT);
    assert_exact(&store);
}

#[test]
fn a_redis_that_is_a_replica_for_a_while_admits_nothing_meanwhile() {
    demote_under_load(Flavor::Redis, Scripting::Script);
    demote_under_load(Flavor::Redis, Scripting::Function);
}

#[test]
fn a_valkey_that_is_a_replica_for_a_while_admits_nothing_meanwhile() {
    demote_under_load(Flavor::Valkey, Scripting::Auto);
}

/// The sentinels find it a replica, and make another the primary. All that was ever granted the others have.
fn replace_under_load(flavor: Flavor) {
    let all = Sentinels::start(flavor);
    let store = patient_at(&all.url()).timeout(Duration::from_secs(10)).max_refusals(0).build();
    let (subject, limit) = (Subject::of(["k"]), lasting(LIMIT));
    let ask = plan(&subject, &limit, 1);
    let mut tally = take_some(&store, &ask);
    let old = all.primary();
    sync(old, "mark", "2");
    demote(old);
    let error = block_on(store.take(&ask)).unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("is a read-only replica"),
        "{error}"
    );
    let meanwhile = meanwhile(&store, &ask, || {
        let _ = all.wait_for_new_primary(old);
        let promoted = Instant::now();
        // An attempt that began before may fail; the next cannot. Each has a second and a pause before it of a
        // tenth, so that is two seconds at most, on a machine with time for it.
        block_on(async {
            if store.connect().await.is_err() {
                store.connect().await.unwrap();
            }
        });
        println!("{flavor}: exact {:?} after the promotion", promoted.elapsed());
    });
    assert!(meanwhile.failed > 0, "nobody asked in between");
    tally.use_up(&store, &ask);
    let admitted = tally.admitted + meanwhile.admitted;
    assert!(admitted <= LIMIT && admitted + LOST >= LIMIT, "{admitted}");
    assert_eq!(tally.failed, 0);
    assert_exact(&store);
}

#[test]
fn a_redis_found_to_be_a_replica_is_replaced_and_its_successor_followed() {
    replace_under_load(Flavor::Redis);
}

#[test]
fn a_valkey_found_to_be_a_replica_is_replaced_and_its_successor_followed() {
    replace_under_load(Flavor::Valkey);
}
