//! Clusters: routing, slot migration and failover.

use tollgate_testkit::server::{Cluster, Raw, Server, slot_of};

use crate::with_each;

/// Keys of one slot.
const KEYS: [&str; 3] = ["{moving}a", "{moving}b", "{moving}c"];

#[test]
fn cluster_routes_keys_and_migrates_slots() {
    with_each(|flavor| {
        let cluster = Cluster::start(flavor);
        check_routing(&cluster);
        check_migration(&cluster);
        check_reshard(&cluster);
        check_failover(&cluster);
        let ports = cluster.ports();
        drop(cluster);
        assert!(
            ports.into_iter().all(|port| Raw::try_connect(port).is_err()),
            "{flavor} still runs"
        );
    });
}

fn check_routing(cluster: &Cluster) {
    assert_eq!((cluster.nodes().len(), cluster.ports().len()), (6, 6));
    let [first, second, third] = &cluster.nodes()[..3] else { panic!("six nodes") };
    let at = |node: &Server| format!("127.0.0.1:{}", node.port());
    let url = format!("redis+cluster://{},{},{}", at(first), at(second), at(third));
    assert_eq!(cluster.url(), url);
    for key in ["key", "a{tag}b", "{}", "a{b"] {
        let slot = slot_of(key);
        let reply = first.raw().call(&["CLUSTER", "KEYSLOT", key]).int();
        assert_eq!(reply, i64::from(slot), "{key}");
        let owner = cluster.primary_of_slot(slot);
        assert_eq!(owner.raw().call(&["SET", key, "1"]).text(), "OK");
        for node in cluster.nodes().iter().filter(|node| node.port() != owner.port()) {
            let moved = node.raw().call(&["GET", key]).error().to_owned();
            assert_eq!(moved, format!("MOVED {slot} {}", at(owner)));
        }
    }
}

fn check_migration(cluster: &Cluster) {
    let slot = slot_of(KEYS[0]);
    let from = cluster.primary_of_slot(slot);
    for key in KEYS {
        assert_eq!(from.raw().call(&["SET", key, key]).text(), "OK");
    }
    let mut primaries = cluster.nodes()[..3].iter();
    let to =
        primaries.find(|node| node.port() != from.port()).expect("the cluster has three primaries");
    let mut migration = cluster.begin_migration(slot, to);
    assert_eq!((migration.from().port(), migration.to().port()), (from.port(), to.port()));
    assert_eq!(migration.move_keys(1), 1);
    let (mut source, mut target) = (from.raw(), to.raw());
    let replies = KEYS.map(|key| source.call(&["GET", key]));
    assert_eq!(replies.iter().filter(|reply| !reply.is_error()).count(), 2, "{replies:?}");
    for (key, reply) in KEYS.into_iter().zip(replies).filter(|(_, reply)| reply.is_error()) {
        assert_eq!(reply.error(), format!("ASK {slot} 127.0.0.1:{}", to.port()));
        assert!(target.call(&["GET", key]).error().starts_with("MOVED"), "needs ASKING");
        assert_eq!(target.call(&["ASKING"]).text(), "OK");
        assert_eq!(target.call(&["GET", key]).text(), key);
    }
    migration.finish();
    for key in KEYS {
        assert!(source.call(&["GET", key]).error().starts_with("MOVED"), "{key}");
        assert_eq!(target.call(&["GET", key]).text(), key);
    }
    assert_eq!(cluster.primary_of_slot(slot).port(), to.port());
}

fn check_reshard(cluster: &Cluster) {
    let to = &cluster.nodes()[2];
    cluster.reshard(0..20, to);
    cluster.wait_ok();
    assert!((0..20).all(|slot| cluster.primary_of_slot(slot).port() == to.port()));
}

fn check_failover(cluster: &Cluster) {
    let slot = slot_of("kept");
    let old = cluster.primary_of_slot(slot);
    assert_eq!(old.raw().call(&["SET", "kept", "1"]).text(), "OK");
    let replicas = cluster.replicas_of(old);
    assert_eq!(replicas.len(), 1);
    cluster.failover(replicas[0]);
    let new = cluster.primary_of_slot(slot);
    assert_eq!(new.port(), replicas[0].port());
    assert_eq!(new.raw().call(&["GET", "kept"]).text(), "1");
    assert_eq!(cluster.replicas_of(new).first().map(|node| node.port()), Some(old.port()));
}

#[test]
fn killed_or_hung_primary_is_replaced() {
    with_each(|flavor| {
        let cluster = Cluster::start(flavor);
        let slot = slot_of("key");
        let killed = cluster.primary_of_slot(slot);
        let mut raw = killed.raw();
        raw.call(&["SET", "key", "1"]);
        assert_eq!(raw.call(&["WAIT", "1", "0"]).int(), 1);
        killed.kill();
        let new = cluster.primary_of_slot(slot);
        cluster.wait_ok();
        assert_ne!(new.port(), killed.port(), "{flavor}");
        assert_eq!(new.raw().call(&["GET", "key"]).text(), "1");
        // The restarted node knows the others, and has the data of the new primary.
        killed.restart();
        cluster.wait_ok();
        assert_eq!(cluster.replicas_of(new).first().map(|node| node.port()), Some(killed.port()));
        assert_eq!(killed.raw().call(&["DBSIZE"]).int(), 1);
        new.hang();
        cluster.wait_ok();
        assert_eq!(cluster.primary_of_slot(slot).port(), killed.port(), "{flavor}");
        new.resume();
        cluster.wait_ok();
        assert_eq!(cluster.replicas_of(killed).first().map(|node| node.port()), Some(new.port()));
    });
}
