//! A cluster that replies, but runs nothing, is unavailable: this process has no backlog.

use std::time::Duration;

use tollgate::{Limit, Quota, Store, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Cluster, Flavor};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, plan};

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
