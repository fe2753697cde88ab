//! A cluster that replies, but runs nothing, is unavailable: this process has no backlog.

use std::thread;
use std::time::Duration;

use tollgate::{Limit, Quota, Store, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Cluster, Flavor, Server};
use tollgate_testkit::wait::eventually;

use crate::cluster_fixture::{cluster_builder, slot};
use crate::fixture::{block_on, plan};
use crate::tally::century_window;

#[test]
fn cluster_without_all_slots_is_lost_not_overloaded() {
    let cluster = Cluster::of(Flavor::Redis, 1, 0);
    let builder = RedisStore::builder(cluster.url().parse().unwrap());
    let store = builder.timeout(Duration::from_millis(300)).max_refusals(0).build();
    let limit = Limit::token_bucket(Quota::per_day(1_000_000)).unwrap();
    let subject = Subject::of(["k"]);
    eventually("the cluster decides", || block_on(store.take(&plan(&subject, &limit, 1))).is_ok());
    let mut node = cluster.primary_of_slot(0).raw();
    let reply = node.call(&["CLUSTER", "DELSLOTS", "16383"]);
    assert!(!reply.is_error(), "{reply:?}");
    eventually("the cluster is down", || {
        node.call(&["CLUSTER", "INFO"]).text().contains("cluster_state:fail")
    });
    for nth in 0..20 {
        let subject = Subject::of([format!("k{nth}")]);
        let error = block_on(store.take(&plan(&subject, &limit, 1))).unwrap_err();
        // A timeout if the last attempt was in flight at the end.
        let is_lost = matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Timeout);
        assert!(is_lost, "{error}");
    }
}

/// Sets the owner of a slot in the view of a node.
fn assign(node: &Server, slot: u16, owner: &Server) {
    let id = owner.raw().call(&["CLUSTER", "MYID"]);
    let reply = node.raw().call(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", id.text()]);
    assert!(!reply.is_error(), "{reply:?}");
}

/// Returns how often the nodes have redirected a call.
fn redirections(cluster: &Cluster) -> u64 {
    let count = |node: &Server| -> u64 {
        let info = node.raw().call(&["INFO", "errorstats"]);
        let lines = info.text().lines();
        let mut counts = lines.filter_map(|line| line.strip_prefix("errorstat_MOVED:count="));
        counts.next().map_or(0, |count| count.parse().unwrap())
    };
    cluster.nodes().iter().map(count).sum()
}

/// After an interrupted migration, two nodes may each redirect to the other.
#[test]
fn call_waits_while_nodes_disagree_about_a_slot() {
    let cluster = Cluster::of(Flavor::Redis, 3, 0);
    let (subject, limit) = (Subject::of(["k"]), century_window(10));
    let slot = slot(&subject);
    let owner = cluster.primary_of_slot(slot);
    let other = cluster.nodes().iter().find(|node| node.port() != owner.port()).unwrap();
    let (patient, hasty) = (cluster_builder(&cluster), cluster_builder(&cluster));
    let (patient, hasty) = (patient.build(), hasty.timeout(Duration::from_millis(500)).build());
    for store in [&patient, &hasty] {
        eventually("there is a connection", || block_on(store.connect()).is_ok());
    }
    let request = plan(&subject, &limit, 1);
    assign(owner, slot, other);
    let reason = format!("disagree about which of them has slot {slot}");
    // It is a timeout if the last attempt was in flight at the end.
    eventually("the error names the slot", || {
        let error = block_on(hasty.take(&request)).unwrap_err();
        error.kind() == StoreErrorKind::Unavailable && error.to_string().contains(&reason)
    });
    let before = redirections(&cluster);
    let decision = thread::scope(|scope| {
        let decision = scope.spawn(|| block_on(patient.take(&request)));
        eventually("it was redirected often", || redirections(&cluster) > before + 20);
        assign(owner, slot, owner);
        decision.join().unwrap()
    });
    assert!(decision.unwrap().is_allowed());
}
