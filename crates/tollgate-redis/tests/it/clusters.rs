//! Limits are exact on a cluster: over several slots and nodes, during slot migration, and after failovers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tollgate::{Key, LeaseSize, Limit, Listing, Plan, Store, Subject, Take, Timestamp};
use tollgate_redis::{
    Change, Event, NodeRecord, NodeState, OutgoingReport, RedisStore, RedisStoreBuilder, Scripting,
};
use tollgate_testkit::server::{Cluster, Flavor};
use tollgate_testkit::wait::{MAX_WAIT, eventually, pause};

use crate::cluster_fixture::{cluster_builder, slot, subjects, used};
use crate::fixture::{
    block_on, in_order, limits_of_each_algorithm, name_of, override_of, plan, prefix,
    shared_cluster,
};
use crate::tally::{LOST, Tally, assert_exact, century_window, meanwhile, sync};

const CALLERS: usize = 8;

/// A builder for the shared cluster with a unique prefix.
fn isolated_builder() -> RedisStoreBuilder {
    cluster_builder(shared_cluster(Flavor::Redis)).prefix(prefix()).unwrap()
}

#[test]
fn plan_over_several_slots_takes_all_or_nothing() {
    let (store, subjects) = (isolated_builder().build(), subjects(5));
    for (wide, narrow) in limits_of_each_algorithm(1000).iter().zip(limits_of_each_algorithm(30)) {
        let takes = subjects.iter().enumerate().map(|(nth, subject)| {
            let limit = if nth == 3 { &narrow } else { wide };
            Take::new(Key::new(subject, limit), 1)
        });
        let request = Plan::new(takes).unwrap();
        let results = block_on(in_order((0..40).map(|_| store.take(&request))));
        let passed = results.into_iter().filter(|result| result.as_ref().unwrap().is_allowed());
        let passed = u64::try_from(passed.count()).unwrap();
        // Refused plans have refunded what they took.
        assert_eq!(passed, 30, "{}", wide.algorithm());
        for (nth, subject) in subjects.iter().enumerate() {
            let limit = if nth == 3 { &narrow } else { wide };
            assert_eq!(used(&store, subject, limit), 30, "{} of {subject}", limit.algorithm());
        }
    }
}

/// Takes from one or two limits of a subject until `is_over`. Returns the admissions per limit.
async fn load(
    store: &RedisStore,
    (subject, limits): (&Subject, &[Limit]),
    is_over: &AtomicBool,
    caller: usize,
) -> Vec<u64> {
    let mut admitted = vec![0; limits.len()];
    for nth in caller.. {
        let chosen = [nth, nth + 1].map(|nth| nth % limits.len());
        let chosen = &chosen[..1 + nth / limits.len() % 2];
        let takes = chosen.iter().map(|limit| Take::new(Key::new(subject, &limits[*limit]), 1));
        let plan = Plan::new(takes).unwrap();
        if store.take(&plan).await.expect("the migration causes no error").is_allowed() {
            chosen.iter().for_each(|limit| admitted[*limit] += 1);
        }
        if is_over.load(Ordering::Relaxed) {
            break;
        }
    }
    admitted
}

/// Migrates a slot with one counter per algorithm from primary to primary, key by key.
fn move_under_load(flavor: Flavor, size: LeaseSize) {
    const LIMIT: u64 = 3000;
    let cluster = Cluster::of(flavor, 3, 0);
    let store = cluster_builder(&cluster).build();
    let (subject, limits) = (Subject::of(["k"]), limits_of_each_algorithm(LIMIT));
    let limits: Vec<Limit> = limits.into_iter().map(|limit| limit.with_lease(size)).collect();
    let is_over = AtomicBool::new(false);
    let callers = (0..CALLERS).map(|nth| load(&store, (&subject, &limits), &is_over, nth));
    let admitted = thread::scope(|scope| {
        let load = scope.spawn(|| block_on(in_order(callers)));
        for round in 0..9 {
            let from = cluster.primary_of_slot(slot(&subject)).port();
            let mut others = cluster.nodes().iter().filter(|node| node.port() != from);
            let to = others.nth(round % 2).unwrap();
            let mut migration = cluster.begin_migration(slot(&subject), to);
            pause();
            for _ in 0..limits.len() / 2 {
                migration.move_keys(1);
                pause();
            }
            migration.finish();
            pause();
        }
        is_over.store(true, Ordering::Relaxed);
        load.join().unwrap()
    });
    for (nth, limit) in limits.iter().enumerate() {
        let request = plan(&subject, limit, 1);
        let mut tally = Tally::default();
        tally.use_up(&store, &request);
        let before: u64 = admitted.iter().map(|admitted| admitted[nth]).sum();
        println!("{}: {before} while the slot moved, {} after", limit.algorithm(), tally.admitted);
        assert_eq!(tally.failed, 0, "{}", limit.algorithm());
        assert!(before + tally.admitted <= LIMIT, "{}", limit.algorithm());
        let leases = store.lease_stats();
        // Of all limits.
        let unspent = leases.granted + leases.refunded - leases.spent;
        assert!(before + tally.admitted + unspent >= LIMIT, "{}", limit.algorithm());
    }
    assert_eq!(store.lease_stats().decisions > 0, size != LeaseSize::Off);
}

#[test]
fn redis_slot_migration_under_load_causes_no_errors() {
    move_under_load(Flavor::Redis, LeaseSize::Off);
}

#[test]
fn slot_migration_with_leases_stays_within_every_limit() {
    move_under_load(Flavor::Redis, LeaseSize::Auto);
}

#[test]
fn valkey_slot_migration_under_load_causes_no_errors() {
    move_under_load(Flavor::Valkey, LeaseSize::Off);
}

/// While the keys of a plan are on two nodes, the plan waits.
#[test]
fn plan_waits_while_its_keys_are_on_two_nodes() {
    let cluster = Cluster::of(Flavor::Redis, 3, 0);
    let store = cluster_builder(&cluster).build();
    let (subject, limits) = (Subject::of(["k"]), limits_of_each_algorithm(10));
    let takes = limits.iter().map(|limit| Take::new(Key::new(&subject, limit), 1));
    let request = Plan::new(takes).unwrap();
    assert!(block_on(store.take(&request)).unwrap().is_allowed());
    let from = cluster.primary_of_slot(slot(&subject));
    let to = cluster.nodes().iter().find(|node| node.port() != from.port()).unwrap();
    let mut migration = cluster.begin_migration(slot(&subject), to);
    migration.move_keys(1);
    let decision = thread::scope(|scope| {
        let take = scope.spawn(|| block_on(store.take(&request)));
        eventually("TRYAGAIN was returned often", || {
            let reply = from.raw().call(&["INFO", "errorstats"]);
            let count = reply
                .text()
                .lines()
                .find_map(|line| line.strip_prefix("errorstat_TRYAGAIN:count="));
            count.is_some_and(|count| count.parse::<u64>().unwrap() > 20) || take.is_finished()
        });
        migration.finish();
        take.join().unwrap()
    });
    assert_eq!(decision.unwrap().remaining(), Some(8));
}

/// The new primary has no scripts or functions, and only functions are allowed.
#[test]
fn replica_takes_over_under_load() {
    const LIMIT: u64 = 2000;
    let cluster = Cluster::start(Flavor::Redis);
    let store = cluster_builder(&cluster)
        .timeout(Duration::from_secs(2))
        .scripting(Scripting::Function)
        .build();
    let (subject, limit) = (Subject::of(["k"]), century_window(LIMIT));
    let request = plan(&subject, &limit, 1);
    let mut before = Tally::default();
    (0..LIMIT / 4).for_each(|_| before.take(&store, &request));
    assert_eq!((before.admitted, before.failed), (LIMIT / 4, 0));
    let old = cluster.primary_of_slot(slot(&subject));
    sync(old, &format!("{{{subject}}}mark"), "1");
    let meanwhile = meanwhile(&store, &request, || {
        old.kill();
        cluster.wait_ok();
    });
    let new = cluster.primary_of_slot(slot(&subject));
    assert_ne!(new.port(), old.port());
    new.raw().call(&["FUNCTION", "FLUSH"]);
    new.raw().call(&["SCRIPT", "FLUSH"]);
    let mut after = Tally::default();
    after.use_up(&store, &request);
    let admitted = before.admitted + meanwhile.admitted + after.admitted;
    assert_eq!(after.failed, 0, "the new primary is available and has loaded the functions");
    assert!(admitted <= LIMIT + meanwhile.admitted && admitted <= 2 * LIMIT, "{admitted}");
    assert!(admitted + LOST >= LIMIT, "{admitted}");
    assert_exact(&store);
    // The old primary comes back as a replica.
    old.restart();
    cluster.wait_ok();
    assert!(!block_on(store.take(&request)).unwrap().is_allowed());
}

#[test]
fn programs_are_loaded_again_after_a_restart() {
    let cluster = Cluster::of(Flavor::Redis, 3, 0);
    for scripting in [Scripting::Function, Scripting::Script] {
        let store = cluster_builder(&cluster).scripting(scripting).build();
        assert_exact(&store);
        cluster.primary_of_slot(slot(&Subject::of(["another"]))).restart();
        cluster.wait_ok();
        eventually("the store is connected again", || block_on(store.connect()).is_ok());
        assert_exact(&store);
        cluster.primary_of_slot(slot(&Subject::of(["another"]))).raw().call(&["FLUSHALL"]);
    }
}

#[test]
fn listing_returns_every_key_of_every_primary_once() {
    let prefix = prefix();
    let store = || isolated_builder().prefix(&*prefix).unwrap().build();
    let (writer, limit) = (store(), century_window(10));
    let subjects: Vec<Subject> = (0..500).map(|nth| Subject::of([format!("s{nth}")])).collect();
    let mut expected: Vec<String> = subjects.iter().map(Subject::to_string).collect();
    expected.sort();
    let plans = subjects.iter().map(|subject| plan(subject, &limit, 1)).collect::<Vec<_>>();
    for result in block_on(in_order(plans.iter().map(|plan| writer.take(plan)))) {
        assert!(result.unwrap().is_allowed());
    }
    // The second reader has no topology yet.
    for reader in [writer, store()] {
        let (mut listing, mut found) = (Some(Listing::all().with_page_size(40)), Vec::new());
        while let Some(next) = listing {
            let page = block_on(reader.list(&next)).unwrap();
            found.extend(page.keys.into_iter().map(|key| key.subject));
            listing = page.next.map(|cursor| next.after(cursor));
        }
        found.sort();
        assert_eq!(found, expected);
    }
    for node in shared_cluster(Flavor::Redis).nodes() {
        let has_some = subjects.iter().any(|subject| {
            let key = name_of(&prefix, &Key::new(subject, &limit));
            let reply = node.raw().call(&["EXISTS", &key]);
            !reply.is_error() && reply.int() == 1
        });
        assert!(has_some, "nothing is on {}", node.port());
    }
}

#[test]
fn directory_works_on_a_cluster() {
    let prefix = prefix();
    let store = || isolated_builder().prefix(&*prefix).unwrap().build();
    let (store, watching) = (store(), store());
    let (sender, events) = channel();
    block_on(async {
        watching.directory().watch(move |event| sender.send(event).unwrap_or_default());
    });
    assert_eq!(events.recv_timeout(MAX_WAIT), Ok(Event::Subscribed));
    let directory = store.directory();
    let at = Timestamp::from_micros(7_000_000);
    let node = NodeRecord { id: "a".to_owned(), address: "host:1".to_owned(), registered_at: at };
    let lifetime = Duration::from_secs(3600);
    let report = OutgoingReport { node: &node, lifetime, events: &[], figures: None };
    assert_eq!(block_on(directory.report(&report)).unwrap().up, 1);
    let nodes = block_on(watching.directory().nodes()).unwrap();
    assert_eq!((nodes.len(), nodes[0].state), (1, NodeState::Up));
    block_on(directory.leave(&node)).unwrap();
    assert_eq!(block_on(directory.nodes()).unwrap(), []);
    let client = Subject::of(["c"]);
    assert_eq!(block_on(directory.put_override(&client, &override_of(1), "entry")).unwrap(), None);
    let listed = block_on(watching.directory().overrides()).unwrap().overrides;
    assert_eq!(*listed.get(&client)[0], override_of(1));
    assert_eq!(block_on(directory.remove_overrides(&client, None, "entry")).unwrap().len(), 1);
    assert_eq!(block_on(directory.audit(None, 9)).unwrap().len(), 2);
    let limit = century_window(10);
    let mut expected = vec![Change::Override { client: ":c".to_owned() }; 2];
    // The subjects are on different nodes.
    for subject in &subjects(9) {
        let _ = block_on(store.take(&plan(subject, &limit, 2))).unwrap();
        let _ = block_on(store.refund(&plan(subject, &limit, 1))).unwrap();
        expected.push(Change::QuotaFreed { subject: subject.as_str().to_owned() });
    }
    let announced = Change::Override { client: "last".to_owned() };
    block_on(directory.announce(&announced)).unwrap();
    expected.push(announced);
    // Events of different nodes arrive in any order.
    let mut received: Vec<Change> = Vec::new();
    while received.len() < expected.len() {
        match events.recv_timeout(MAX_WAIT) {
            Ok(Event::Changed(change)) => received.push(change),
            other => panic!("{other:?} after {received:?}"),
        }
    }
    for change in &expected {
        assert!(received.contains(change), "{change:?} is not in {received:?}");
    }
}
