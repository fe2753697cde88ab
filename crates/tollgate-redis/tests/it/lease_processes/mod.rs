//! Processes with leases on one Redis stay within every limit while they are killed, suspended and cut off, and while the
//! primary fails over.
//!
//! `TOLLGATE_LEASE_DECISIONS=10000000 TOLLGATE_LEASE_PROCESSES=8 cargo test --release -p tollgate-redis --all-features
//! --test redis_store lease_processes -- --nocapture` is the long form: it injects faults until there are that many
//! decisions about each limit, in at least `TOLLGATE_LEASE_ROUNDS` rounds. A worker process is this test program, started again with one test. It writes the
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

/// The index in [`limits`] of a bucket that workers can drain in less time than a lease lasts, also on a busy machine. Its
/// leases last half a second, in which an eighth of the burst refills.
const SLOW_BUCKET: usize = 5;

/// Number of processes that drain [`SLOW_BUCKET`]. More of them need more takes to lease.
const FEW_PROCESSES: usize = 4;

/// A limit of each algorithm, with its guarantee, and a slow bucket.
fn limits() -> Vec<(Limit, Bound)> {
    let second = Duration::from_secs(1);
    let window = Duration::from_secs(2);
    let limits = [
        (Limit::token_bucket(Quota::per_second(COUNT)), Bound::bucket(COUNT, COUNT)),
        (Limit::sliding_window(Quota::new(COUNT, window)), Bound::Sliding(COUNT, window)),
        (Limit::sliding_counter(Quota::per_second(COUNT)), Bound::Fading(COUNT, second)),
        (Limit::fixed_window(Quota::per_second(COUNT)), Bound::Rolling(COUNT, second)),
        (Limit::calendar_window(COUNT, CalendarUnit::Second, "UTC"), Bound::Aligned(COUNT, second)),
        (Limit::token_bucket(Quota::per_second(500).burst(2000)), Bound::bucket(500, 2000)),
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

    /// Prints the figures, and asserts the guarantee of the limit.
    fn assert_holds(&self, limit: &Limit, bound: Bound) {
        self.print(limit, bound);
        assert!(self.totals.leased > 0, "{}: nothing was leased", limit.algorithm());
        bound.assert_holds(&self.admissions, MAX_LATENCY);
    }
}

/// Injects every fault until the workers made enough decisions. Most decisions are refusals, which are fast, so there is also
/// a number of rounds.
fn inject_faults(fleet: &mut Fleet, cluster: &Cluster) -> FaultCounts {
    let decisions = setting("TOLLGATE_LEASE_DECISIONS", 1);
    let rounds = setting("TOLLGATE_LEASE_ROUNDS", 1);
    let mut faults = FaultCounts::default();
    while faults.rounds() < rounds || Totals::read(fleet.logs()).decisions < decisions {
        faults.inject(fleet, cluster);
    }
    faults.assert_all_injected();
    faults
}

/// Runs workers on one limit until `run` returns.
fn run_workers(
    (limit, processes): (usize, usize),
    (cluster, folder): (&Cluster, &Path),
    run: impl FnOnce(&mut Fleet, &Cluster) -> FaultCounts,
) -> Report {
    let calls_before = all_script_calls(cluster);
    let mut fleet = Fleet::start(cluster, limit, processes, folder);
    let faults = run(&mut fleet, cluster);
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

/// Creates a folder for the logs of workers.
fn new_folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("tollgate-leases-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn processes_with_leases_stay_within_each_limit() {
    if let Some(work) = Work::assigned() {
        return work.run();
    }
    let (cluster, folder) = (start_cluster(), new_folder("faults"));
    let processes = usize::try_from(setting("TOLLGATE_LEASE_PROCESSES", 4)).unwrap();
    for (nth, (limit, bound)) in limits().iter().take(SLOW_BUCKET).enumerate() {
        let report = run_workers((nth, processes), (&cluster, &folder), inject_faults);
        report.assert_holds(limit, *bound);
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// If leases were debited with their size only, what the bucket refills until they end would be admitted twice.
#[test]
fn leases_that_are_spent_at_their_end_stay_within_the_limit() {
    let (cluster, folder) = (start_cluster(), new_folder("slow"));
    let (limit, bound) = limits().remove(SLOW_BUCKET);
    let report = run_workers((SLOW_BUCKET, FEW_PROCESSES), (&cluster, &folder), |fleet, _| {
        fleet.wait_for_admissions();
        traffic::wait_for_cycle(fleet.hold());
        FaultCounts::default()
    });
    report.assert_holds(&limit, bound);
    fs::remove_dir_all(&folder).unwrap();
}
