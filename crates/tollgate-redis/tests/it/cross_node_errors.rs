//! A plan over several nodes of a cluster takes nothing if one of the nodes fails.

use std::time::Duration;

use tollgate::{Key, Limit, PermitId, Plan, Store, StoreErrorKind, Subject, Take};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Cluster, Flavor, slot_of};

use crate::fixture::block_on;
use crate::tally::century_window;

const MINUTE: Duration = Duration::from_secs(60);

fn open(cluster: &Cluster) -> RedisStore {
    let builder = RedisStore::builder(cluster.url().parse().unwrap());
    let store = builder.timeout(MINUTE).max_refusals(0).build();
    block_on(store.connect()).unwrap();
    store
}

/// Restricts the permissions of the store on the node of a subject.
fn restrict(cluster: &Cluster, subject: &Subject, rule: &str) {
    let node = cluster.primary_of_slot(slot_of(format!("{{{subject}}}")));
    assert!(!node.raw().call(&["ACL", "SETUSER", "default", rule]).is_error());
}

/// Returns two subjects on different nodes.
fn subjects(cluster: &Cluster) -> [Subject; 2] {
    let port =
        |subject: &Subject| cluster.primary_of_slot(slot_of(format!("{{{subject}}}"))).port();
    let first = Subject::of(["first"]);
    let mut others = (0..).map(|nth| Subject::of([format!("s{nth}")]));
    let second = others.find(|other| port(other) != port(&first)).unwrap();
    [first, second]
}

/// The node of the second subject refuses takes, after the other node has taken.
#[test]
fn failed_node_takes_nothing_on_the_others() {
    let cluster = Cluster::of(Flavor::Redis, 3, 0);
    let store = open(&cluster);
    let [first, second] = subjects(&cluster);
    let (window, slots) = (century_window(10), Limit::concurrency(10, MINUTE).unwrap());
    let failing = Take::new(Key::new(&second, &window), 1);
    let used = |limit| block_on(store.stats(&Key::new(&first, limit))).unwrap().count();
    restrict(&cluster, &second, "-@scripting");
    for failing in [failing, failing.shadow(1)] {
        for permit in [None, Some(PermitId::random())] {
            let taken = [&window, &slots].map(|limit| Take::new(Key::new(&first, limit), 1));
            let plan = Plan::new(taken.into_iter().chain([failing])).unwrap();
            let plan = match permit {
                Some(permit) => plan.with_permit(permit),
                None => plan,
            };
            let error = block_on(store.take(&plan)).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
            assert_eq!((used(&window), used(&slots)), (0, 0), "{:?}", failing.mode());
        }
    }
}

/// The node that has taken cannot publish, so that its refund fails.
#[test]
fn failed_refund_is_reported_as_lost() {
    let cluster = Cluster::of(Flavor::Redis, 3, 0);
    let store = open(&cluster);
    let [first, second] = subjects(&cluster);
    let limit = century_window(10);
    restrict(&cluster, &first, "-publish");
    restrict(&cluster, &second, "-@scripting");
    let failing = Take::new(Key::new(&second, &limit), 1);
    for failing in [failing, failing.shadow(1)] {
        let plan = Plan::new([Take::new(Key::new(&first, &limit), 1), failing]).unwrap();
        let error = block_on(store.take(&plan)).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Lost, "{error}");
    }
}
