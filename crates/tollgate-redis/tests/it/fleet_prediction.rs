//! The simulator of fleets predicts the calls of real processes to a real Redis.
//!
//! Two processes receive the requests that the simulator draws, at the same times. `TOLLGATE_PREDICTION_SECONDS=20 cargo
//! test --release -p tollgate-redis --all-features --test redis_store fleet_prediction -- --nocapture` compares for that
//! long and accepts a difference of 20 %. By default, on a machine that may be busy, the run is short, and the calls may
//! differ by a factor of two.

use std::env;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;
use tollgate::{Key, Limit, Plan, Source, Store, Subject, Take};
use tollgate_redis::RedisStore;
use tollgate_testkit::fleet::{Demand, Figures, Scenario, StoreModel, simulate};
use tollgate_testkit::server::{Flavor, Server};

use crate::fixture::{block_on, script_calls};

/// The environment variable with the work of a process.
const WORK_VARIABLE: &str = "TOLLGATE_PREDICTION_WORK";
const TEST: &str = "fleet_prediction::the_simulator_predicts_the_calls_of_two_processes";
const PROCESSES: usize = 2;
/// From the start of the processes to the first request.
const PREPARATION: Duration = Duration::from_millis(1500);
/// The resolution of timers.
const TICK: Duration = Duration::from_millis(1);

/// Two nodes and 50 keys: the hot ones are leased, the others are not. A request seldom arrives within the same tick as
/// another one, so that few requests share a call because of the timer.
fn scenario() -> Scenario {
    let seconds: u64 = env::var("TOLLGATE_PREDICTION_SECONDS").map_or(3, |it| it.parse().unwrap());
    Scenario {
        nodes: PROCESSES,
        spread: PROCESSES,
        keys: 50,
        rate: 600.0,
        limit_rate: 10_000,
        limit_burst: 80_000,
        warm_up: 0,
        length: seconds * 1_000_000,
        store: StoreModel::measured(1),
        ..Scenario::steady(11)
    }
}

/// The work of one process.
#[derive(Debug, Clone)]
struct Work {
    url: String,
    node: usize,
    /// Microseconds since 1970.
    start: u64,
}

/// Decisions of a process, and those of leases.
#[derive(Debug, Default)]
struct Counts {
    decisions: u64,
    leased: u64,
}

impl Work {
    fn assigned() -> Option<Self> {
        let text = env::var(WORK_VARIABLE).ok()?;
        let words: Vec<&str> = text.split(' ').collect();
        let [url, node, start] = words[..] else { return None };
        Some(Self { url: url.to_owned(), node: node.parse().ok()?, start: start.parse().ok()? })
    }

    fn start(&self) -> Child {
        let work = format!("{} {} {}", self.url, self.node, self.start);
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", TEST, "--nocapture"]).env(WORK_VARIABLE, work);
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Sends the requests of this node at their times.
    async fn run(&self) -> Counts {
        let scenario = scenario();
        let limit = Arc::new(scenario.limit());
        let store = RedisStore::from_url(&self.url).unwrap();
        store.connect().await.unwrap();
        let mut demand = Demand::new(&scenario);
        let mut next = demand.draw();
        let mut running = JoinSet::new();
        while next.at < scenario.length {
            while self.start + next.at > micros_now() {
                tokio::time::sleep(TICK).await;
            }
            if next.node == self.node {
                running.spawn(take(store.clone(), Arc::clone(&limit), next.key));
            }
            next = demand.draw();
        }
        let mut counts = Counts::default();
        for source in running.join_all().await {
            counts.decisions += 1;
            counts.leased += u64::from(source == Source::Lease);
        }
        counts
    }
}

async fn take(store: RedisStore, limit: Arc<Limit>, key: u32) -> Source {
    let subject = Subject::of([format!("k{key}")]);
    let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
    let decision = store.take(&plan).await.unwrap();
    assert!(decision.is_allowed(), "the limits are not reached");
    decision.source()
}

fn micros_now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_micros()).unwrap()
}

/// Runs all processes. Returns their counts, and the calls to Redis.
fn run_processes() -> (Counts, u64) {
    let server = Server::start(Flavor::Redis);
    let start = micros_now() + u64::try_from(PREPARATION.as_micros()).unwrap();
    let work = |node| Work { url: server.url(), node, start };
    let children: Vec<Child> = (0..PROCESSES).map(|node| work(node).start()).collect();
    let mut counts = Counts::default();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "a process has failed");
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("COUNTS ")).unwrap();
        let (decisions, leased) = line.split_once(' ').unwrap();
        counts.decisions += decisions.parse::<u64>().unwrap();
        counts.leased += leased.parse::<u64>().unwrap();
    }
    (counts, script_calls(&mut server.raw()))
}

fn part(part: u64, whole: u64) -> f64 {
    let [part, whole] = [part, whole].map(|count| u32::try_from(count).unwrap());
    f64::from(part) / f64::from(whole)
}

/// The part of the predicted calls by which the real calls may differ. In the short form there is no limit, because a busy machine
/// delays the requests of the processes.
fn tolerance() -> Option<f64> {
    env::var("TOLLGATE_PREDICTION_SECONDS").is_ok().then_some(0.2)
}

#[test]
fn the_simulator_predicts_the_calls_of_two_processes() {
    if let Some(work) = Work::assigned() {
        let counts = block_on(work.run());
        // Behind the output of the test harness.
        println!("\nCOUNTS {} {}", counts.decisions, counts.leased);
        std::io::stdout().flush().unwrap();
        return;
    }
    let Figures { calls_per_decision, decisions, sources, violations, .. } = simulate(scenario());
    let (counts, calls) = run_processes();
    let real = part(calls, counts.decisions);
    println!(
        "calls per decision: {real:.4} of {} decisions with {:.3} from leases; predicted {calls_per_decision:.4} of \
         {decisions} with {:.3} from leases",
        counts.decisions,
        part(counts.leased, counts.decisions),
        part(sources.lease, decisions),
    );
    assert_eq!(violations, 0);
    assert!(counts.decisions > 0 && calls > 0, "{counts:?}, {calls} calls");
    if let Some(tolerance) = tolerance() {
        assert!(counts.leased > counts.decisions / 10, "{counts:?}");
        let ratio = (real / calls_per_decision).max(calls_per_decision / real);
        assert!(ratio <= 1.0 + tolerance, "{real} calls, predicted {calls_per_decision}");
    }
}
