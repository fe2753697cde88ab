//! Processes with leases on one Redis stay within every limit while they are killed, suspended and cut off, and while the
//! primary fails over.
//!
//! `TOLLGATE_LEASE_DECISIONS=10000000 TOLLGATE_LEASE_PROCESSES=8 cargo test --release -p tollgate-redis --all-features
//! --test redis_store lease_processes -- --nocapture` is the long form: it injects faults until there are that many
//! decisions about each limit. A worker process is this test program, started again with one test. It writes the
//! number of its admissions in each millisecond to a file, so that they are known when it is killed.
//!
//! The store is a cluster of a primary and a replica. The failover is coordinated (`CLUSTER FAILOVER`): the primary
//! stops writes until the replica has all of them, so the bound stays exact. A failover that is not coordinated may lose
//! acknowledged writes, because Redis replicates asynchronously. The new primary then grants again what the old one
//! had admitted or leased and not replicated, at most the limit of each key (`docs/REDIS.md`, Failover).

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, Quota};
use tollgate_testkit::server::{Cluster, Flavor};

use crate::admission_log::{Admissions, Bound};
use crate::fixture::script_calls;
use faults::FaultCounts;
use fleet::Fleet;
use worker::{MAX_LATENCY, Work};
use worker_log::Totals;

mod faults;
mod fleet;
mod traffic;
mod worker;
mod worker_log;

const COUNT: u64 = 40_000;

fn setting(variable: &str, default: u64) -> u64 {
    env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A limit of each algorithm, with its guarantee.
fn limits() -> Vec<(Limit, Bound)> {
    let second = Duration::from_secs(1);
    let window = Duration::from_secs(2);
    let limits = [
        (Limit::token_bucket(Quota::per_second(COUNT)), Bound::bucket(COUNT, COUNT)),
        (Limit::sliding_window(Quota::new(COUNT, window)), Bound::Sliding(COUNT, window)),
        (Limit::sliding_counter(Quota::per_second(COUNT)), Bound::Fading(COUNT, second)),
        (Limit::fixed_window(Quota::per_second(COUNT)), Bound::Rolling(COUNT, second)),
        (Limit::calendar_window(COUNT, CalendarUnit::Second, "UTC"), Bound::Aligned(COUNT, second)),
    ];
    limits.map(|(limit, bound)| (limit.unwrap(), bound)).to_vec()
}

/// What happened to one limit.
#[derive(Debug)]
struct Report {
    totals: Totals,
    admissions: Admissions,
    store_calls: u64,
    faults: FaultCounts,
}

impl Report {
    fn print(&self, limit: &Limit, bound: Bound) {
        let Self { totals, admissions, store_calls, faults } = self;
        println!(
            "{}: {} decisions, {} of them from leases; {} admitted and {} more not counted; highest {} of {}; \
             {store_calls} store calls, {} takes failed; {faults}",
            limit.algorithm(),
            totals.decisions,
            totals.leased,
            admissions.total(),
            totals.uncounted,
            bound.highest(admissions, MAX_LATENCY),
            bound.max(),
            totals.failed,
        );
    }

    fn assert_complete(&self, limit: &Limit) {
        assert!(self.totals.leased > 0, "{}: nothing was leased", limit.algorithm());
        self.faults.assert_all_injected();
    }
}

/// Runs workers on one limit, and injects every fault until they made enough decisions.
fn run_workers(limit: usize, cluster: &Cluster, folder: &Path) -> Report {
    let decisions = setting("TOLLGATE_LEASE_DECISIONS", 1);
    let processes = usize::try_from(setting("TOLLGATE_LEASE_PROCESSES", 4)).unwrap();
    let calls_before = all_script_calls(cluster);
    let mut fleet = Fleet::start(cluster, limit, processes, folder);
    let mut faults = FaultCounts::default();
    while faults.rounds() == 0 || Totals::read(fleet.logs()).decisions < decisions {
        faults.inject(&mut fleet, cluster);
    }
    let logs = fleet.stop();
    let texts = logs.iter().map(|log| fs::read_to_string(log).unwrap_or_default());
    Report {
        totals: Totals::read(&logs),
        admissions: Admissions::parse(texts),
        store_calls: all_script_calls(cluster) - calls_before,
        faults,
    }
}

/// Starts a primary and a replica. Only the campaign fails over: on a busy machine a node may consider the other one failed,
/// and a failover of its own would not be coordinated.
fn start_cluster() -> Cluster {
    let cluster = Cluster::of(Flavor::Redis, 1, 1);
    for node in cluster.nodes() {
        let reply = node.raw().call(&["CONFIG", "SET", "cluster-replica-no-failover", "yes"]);
        assert_eq!(reply.text(), "OK");
    }
    cluster
}

fn all_script_calls(cluster: &Cluster) -> u64 {
    cluster.nodes().iter().map(|node| script_calls(&mut node.raw())).sum()
}

#[test]
fn processes_with_leases_stay_within_each_limit() {
    if let Some(work) = Work::assigned() {
        return work.run();
    }
    let folder: PathBuf = env::temp_dir().join(format!("tollgate-leases-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let cluster = start_cluster();
    for (nth, (limit, bound)) in limits().iter().enumerate() {
        let report = run_workers(nth, &cluster, &folder);
        report.print(limit, *bound);
        report.assert_complete(limit);
        bound.assert_holds(&report.admissions, MAX_LATENCY);
    }
    fs::remove_dir_all(&folder).unwrap();
}
