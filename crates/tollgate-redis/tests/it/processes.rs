//! Four processes on one Redis admit exactly the limit, with every algorithm.
//!
//! `TOLLGATE_TAKES=1000000 cargo test --release -p tollgate-redis --all-features --test redis_store processes:: --
//! --nocapture` takes a million times from each limit. A worker process is this test program, started again with
//! one test.

use std::env;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tollgate::{Key, Limit, Plan, Store, Subject, Take};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Server};

use crate::fixture::{block_on, builder, in_order, limits_of_each_algorithm};

const PROCESSES: u64 = 4;
/// Concurrent callers in each process.
const CALLERS: u64 = 64;
/// Takes from each limit by all processes together. `TOLLGATE_TAKES` sets another number.
const TAKES: u64 = 200_000;
/// The environment variable with the work of a worker process.
const WORK_VARIABLE: &str = "TOLLGATE_WORK";

fn takes() -> u64 {
    env::var("TOLLGATE_TAKES").ok().and_then(|takes| takes.parse().ok()).unwrap_or(TAKES)
}

/// Returns the count of each limit. It is below a quarter of the takes: each process alone could use it up.
fn count() -> u64 {
    (takes() / PROCESSES / 2).min(100_000)
}

/// The work of one process: takes from these limits, by their indexes in `limits_of_each_algorithm`.
#[derive(Debug, Clone)]
struct Work {
    url: String,
    limits: Vec<usize>,
    takes: u64,
    max_refusals: usize,
}

impl Work {
    /// Returns the work of this process, if it is a worker.
    fn assigned() -> Option<Self> {
        let text = env::var(WORK_VARIABLE).ok()?;
        let mut words = text.split(' ');
        let mut next = || words.next().unwrap().to_owned();
        let url = next();
        let (takes, max_refusals) = (next().parse().unwrap(), next().parse().unwrap());
        Some(Self {
            url,
            limits: words.map(|word| word.parse().unwrap()).collect(),
            takes,
            max_refusals,
        })
    }

    fn text(&self) -> String {
        let limits: Vec<String> = self.limits.iter().map(usize::to_string).collect();
        format!("{} {} {} {}", self.url, self.takes, self.max_refusals, limits.join(" "))
    }

    /// Starts a worker process with this work.
    fn start(&self, test: &str) -> Child {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(WORK_VARIABLE, self.text());
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Does the work and prints the number of admissions.
    fn run(&self) {
        let builder = RedisStore::builder(self.url.parse().unwrap());
        let builder = builder.timeout(Duration::from_secs(300)).max_refusals(self.max_refusals);
        let store = builder.build();
        let (all, subject) = (limits_of_each_algorithm(count()), Subject::of(["k"]));
        let takes = self.limits.iter().map(|nth| Take::new(Key::new(&subject, &all[*nth]), 1));
        let plan = Plan::new(takes).unwrap();
        let callers =
            (0..CALLERS).map(|_| take_repeatedly(&store, &plan, self.takes.div_ceil(CALLERS)));
        let passed: u64 = block_on(in_order(callers)).into_iter().sum();
        println!("\npassed {passed}");
    }
}

async fn take_repeatedly(store: &RedisStore, plan: &Plan<'_>, takes: u64) -> u64 {
    let mut passed = 0;
    for _ in 0..takes {
        passed += u64::from(store.take(plan).await.unwrap().is_allowed());
    }
    passed
}

/// Waits for a worker. Returns its number of admissions.
fn passed(worker: Child) -> u64 {
    let output = worker.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "a worker has failed:\n{text}");
    let count = text.lines().find_map(|line| line.strip_prefix("passed "));
    count.expect("a worker prints its admissions").parse().unwrap()
}

fn left(server: &Server, limit: &Limit) -> u64 {
    let (store, subject) = (builder(server).build(), Subject::of(["k"]));
    block_on(store.stats(&Key::new(&subject, limit))).unwrap().remaining()
}

/// All processes take from one limit at a time.
fn exhaust_each_limit(test: &str, max_refusals: usize) {
    if let Some(work) = Work::assigned() {
        return work.run();
    }
    let server = Server::start(Flavor::Redis);
    for (nth, limit) in limits_of_each_algorithm(count()).iter().enumerate() {
        let (limits, takes) = (vec![nth], takes() / PROCESSES);
        let work = Work { url: server.url(), limits, takes, max_refusals };
        let workers: Vec<Child> = (0..PROCESSES).map(|_| work.start(test)).collect();
        let admitted: Vec<u64> = workers.into_iter().map(passed).collect();
        let total: u64 = admitted.iter().sum();
        println!(
            "{}: at least {} takes, {admitted:?} passed",
            limit.algorithm(),
            takes * PROCESSES
        );
        assert_eq!((total, left(&server, limit)), (count(), 0), "{}", limit.algorithm());
    }
}

#[test]
fn four_processes_admit_exactly_the_limit() {
    exhaust_each_limit("processes::four_processes_admit_exactly_the_limit", 0);
}

#[test]
fn four_processes_with_refusal_cache_admit_exactly_the_limit() {
    exhaust_each_limit(
        "processes::four_processes_with_refusal_cache_admit_exactly_the_limit",
        1000,
    );
}

/// Two processes take from both limits, and one from each alone. Both limits are used up exactly.
#[test]
fn plans_of_two_limits_neither_exceed_nor_waste_either() {
    if let Some(work) = Work::assigned() {
        return work.run();
    }
    let test = "processes::plans_of_two_limits_neither_exceed_nor_waste_either";
    let server = Server::start(Flavor::Redis);
    let limits = limits_of_each_algorithm(count());
    for (one, other) in [(0, 1), (2, 3), (4, 5)] {
        let takes = takes() / PROCESSES;
        let work = |limits: &[usize]| {
            Work { url: server.url(), limits: limits.to_vec(), takes, max_refusals: 1000 }
                .start(test)
        };
        let workers = [work(&[one, other]), work(&[other, one]), work(&[one]), work(&[other])];
        let [both, crossed, first, second] = workers.map(passed);
        println!("{takes} takes each: {both} and {crossed} of both, {first} and {second} alone");
        for (nth, alone) in [(one, first), (other, second)] {
            assert_eq!(both + crossed + alone, count(), "{}", limits[nth].algorithm());
            assert_eq!(left(&server, &limits[nth]), 0);
        }
    }
}
