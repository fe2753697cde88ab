//! Plans for several slots of one cluster node share calls, and stay exact while slots move.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tollgate::{Key, Plan, Store, Subject, Take};
use tollgate_redis::Scripting;
use tollgate_testkit::server::{Cluster, Flavor, Server};
use tollgate_testkit::wait::pause;

use crate::cluster_fixture::{cluster_builder, slot, subjects, used};
use crate::fixture::{block_on, in_order, plan, prefix, shared_cluster};
use crate::tally::{Tally, century_window};

/// Returns the number of script calls that the nodes have processed.
fn script_calls(cluster: &Cluster) -> u64 {
    let of = |node: &Server| {
        let stats = node.raw().call(&["INFO", "commandstats"]);
        let scripts = ["cmdstat_fcall:calls=", "cmdstat_evalsha:calls=", "cmdstat_eval:calls="];
        let calls = |line: &str| {
            let calls = scripts.iter().find_map(|script| line.strip_prefix(script))?;
            calls.split(',').next()?.parse::<u64>().ok()
        };
        stats.text().lines().filter_map(calls).sum::<u64>()
    };
    cluster.nodes().iter().map(of).sum()
}

/// Plans for different slots share calls, if one node has the slots.
#[test]
fn plans_for_slots_of_one_node_share_calls() {
    const PLANS: usize = 300;
    for flavor in [Flavor::Redis, Flavor::Valkey] {
        for scripting in [Scripting::Function, Scripting::Script] {
            let cluster = shared_cluster(flavor);
            let builder = cluster_builder(cluster).prefix(prefix()).unwrap();
            let store = builder.scripting(scripting).build();
            block_on(store.connect()).unwrap();
            let (subjects, limit) = (subjects(PLANS), century_window(3));
            let plans: Vec<_> = subjects.iter().map(|subject| plan(subject, &limit, 1)).collect();
            // Loads the programs.
            let before = script_calls(cluster);
            for round in 0..4 {
                for result in block_on(in_order(plans.iter().map(|plan| store.take(plan)))) {
                    assert_eq!(result.unwrap().is_allowed(), round < 3);
                }
            }
            // Other tests use the cluster too, but a call per plan would be twice as many.
            let calls = script_calls(cluster) - before;
            assert!(calls < 600, "{calls} calls for {} plans", 4 * PLANS);
        }
    }
}

/// Returns subjects in distinct slots of one node.
fn subjects_of_one_node(cluster: &Cluster, count: usize) -> Vec<Subject> {
    let candidates = subjects(8 * count);
    let port = |subject: &Subject| cluster.primary_of_slot(slot(subject)).port();
    let first = port(&candidates[0]);
    candidates.into_iter().filter(|subject| port(subject) == first).take(count).collect()
}

/// While plans over several slots of one node compete, each is decided at once: none is refused by quota that another
/// plan takes and refunds.
#[test]
fn plan_over_slots_of_one_node_is_atomic() {
    const LIMIT: u64 = 50;
    let cluster = Cluster::of(Flavor::Redis, 3, 0);
    let store = cluster_builder(&cluster).build();
    block_on(store.connect()).unwrap();
    let subjects = subjects_of_one_node(&cluster, 3);
    assert_eq!(subjects.len(), 3);
    let (limit, narrow) = (century_window(LIMIT), century_window(1));
    // The first plan of a caller never passes: its last limit is used up. The second passes.
    let blocker = Subject::of(["blocker"]);
    let blocked = subjects_of_one_node(&cluster, 40);
    let blocked = blocked.last().unwrap_or(&blocker);
    assert!(block_on(store.take(&plan(blocked, &narrow, 1))).unwrap().is_allowed());
    let take = |subject, limit| Take::new(Key::new(subject, limit), 1);
    let all = || subjects.iter().map(|subject| take(subject, &limit));
    let never = Plan::new(all().chain([take(blocked, &narrow)])).unwrap();
    let fits = Plan::new(all()).unwrap();
    let before = script_calls(&cluster);
    let results = block_on(in_order((0..4 * LIMIT).map(|nth| {
        let plan = if nth % 2 == 0 { &never } else { &fits };
        store.take(plan)
    })));
    let allowed: Vec<usize> = results
        .into_iter()
        .enumerate()
        .filter_map(|(nth, result)| result.unwrap().is_allowed().then_some(nth))
        .collect();
    // Exactly the first plans that fit pass, in order.
    let expected: Vec<usize> = (0..).map(|nth| 2 * nth + 1).take(50).collect();
    assert_eq!(allowed, expected);
    assert!(script_calls(&cluster) - before < 100, "a plan of one node needs one call");
    for subject in &subjects {
        assert_eq!(used(&store, subject, &limit), LIMIT);
    }
}

/// Many callers use many slots of all nodes, in shared calls, while one slot after another moves.
#[test]
fn node_batches_under_resharding_cause_no_errors() {
    const LIMIT: u64 = 400;
    const MANY: usize = 64;
    let cluster = Cluster::of(Flavor::Redis, 3, 0);
    let store = cluster_builder(&cluster).build();
    let (subjects, limit) = (subjects(24), century_window(LIMIT));
    let is_over = AtomicBool::new(false);
    let caller = |nth: usize| {
        let (store, subjects, limit, is_over) = (&store, &subjects, &limit, &is_over);
        async move {
            let mut admitted = vec![0; subjects.len()];
            for step in nth.. {
                let chosen = [step, step * 7 + 1].map(|step| step % subjects.len());
                // Every third plan has two slots.
                let chosen = if step % 3 == 0 && chosen[0] != chosen[1] {
                    &chosen[..]
                } else {
                    &chosen[..1]
                };
                let takes =
                    chosen.iter().map(|index| Take::new(Key::new(&subjects[*index], limit), 1));
                let plan = Plan::new(takes).unwrap();
                if store.take(&plan).await.expect("the migration causes no error").is_allowed() {
                    chosen.iter().for_each(|index| admitted[*index] += 1);
                }
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
            admitted
        }
    };
    let admitted = thread::scope(|scope| {
        let load = scope.spawn(|| block_on(in_order((0..MANY).map(caller))));
        for (round, subject) in subjects.iter().cycle().take(30).enumerate() {
            let from = cluster.primary_of_slot(slot(subject)).port();
            let mut others = cluster.nodes().iter().filter(|node| node.port() != from);
            let mut migration =
                cluster.begin_migration(slot(subject), others.nth(round % 2).unwrap());
            pause();
            migration.move_keys(1);
            pause();
            migration.finish();
        }
        is_over.store(true, Ordering::Relaxed);
        load.join().unwrap()
    });
    for (nth, subject) in subjects.iter().enumerate() {
        let before: u64 = admitted.iter().map(|admitted| admitted[nth]).sum();
        let mut tally = Tally::default();
        tally.use_up(&store, &plan(subject, &limit, 1));
        assert_eq!((before + tally.admitted, tally.failed), (LIMIT, 0), "{subject}");
    }
}
