//! Streams of four processes that reserve more than they use: they never use more than the limit together.
//!
//! `TOLLGATE_STREAM_RUNS=1000 cargo test --release -p tollgate-redis --all-features --test redis_store
//! reservation_processes` runs a thousand times a thousand concurrent streams. A worker process is this test program,
//! started again with one test. It reads the numbers of runs from its standard input, so that all processes begin a run
//! at the same time.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tollgate::reservation::FinalCosts;
use tollgate::{Algorithm, Costs, Inline, Limit, Limiter, Policy, Query, Quota, Unit};
use tollgate_redis::RedisStore;
use tollgate_testkit::random::Random;
use tollgate_testkit::server::{Flavor, Server};

use crate::fixture::block_on;

const TEST: &str = "reservation_processes::streams_of_four_processes_never_use_more_than_the_limit";
/// The environment variable with the address of the server, in a worker process.
const SERVER_VARIABLE: &str = "TOLLGATE_STREAM_SERVER";
const PROCESSES: u64 = 4;
const STREAMS: u64 = 1_000;
const TOKENS: u64 = 20_000;
const SLOTS: u64 = 500;

fn runs() -> u64 {
    env::var("TOLLGATE_STREAM_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(8)
}

/// A limit of tokens, of an algorithm that depends on the run, and one of concurrent streams. Nothing refills within a test.
fn limits(run: u64) -> Vec<Limit> {
    let quota = Quota::new(TOKENS, Duration::from_secs(36_525 * 86_400));
    let tokens = match run % 4 {
        0 => Limit::token_bucket(quota),
        1 => Limit::sliding_window(quota),
        2 => Limit::sliding_counter(quota),
        _ => Limit::fixed_window(quota),
    };
    let tokens = tokens.unwrap().in_unit(Unit::new("tokens").unwrap()).unwrap();
    vec![tokens, Limit::concurrency(SLOTS, Duration::from_secs(3_600)).unwrap()]
}

fn query(run: u64, amount: u64) -> Query<'static> {
    let inline = Inline::new("", format!("run-{run}"), limits(run), 1).unwrap();
    Query::from(inline.with_costs(Costs::requests(1).and("tokens", amount).unwrap()))
}

fn limiter(url: &str) -> Limiter<RedisStore> {
    let builder = RedisStore::builder(url.parse().unwrap());
    Limiter::new(builder.timeout(Duration::from_secs(300)).build(), Policy::builtin())
}

/// Reserves an estimate, and settles with at most as much. Returns what was used.
async fn run_stream(limiter: &Limiter<RedisStore>, run: u64, mut random: Random) -> u64 {
    let estimate = random.within(1, 200);
    let Ok(reservation) = limiter.reserve(query(run, estimate)).await else { return 0 };
    for _ in 0..random.within(0, 20) {
        tokio::task::yield_now().await;
    }
    let used = random.within(estimate / 2, estimate);
    let finals = FinalCosts::of(Costs::of([("tokens", used)]).unwrap());
    let settled = limiter.settle(&reservation.detach(), None, &finals).await.unwrap().unwrap();
    let unit = settled.units.iter().find(|unit| unit.unit.as_str() == "tokens").unwrap();
    assert_eq!((unit.charged, unit.uncollected), (used, 0));
    used
}

/// Runs the streams of one process at once. Returns what they used.
async fn run_streams(limiter: &Arc<Limiter<RedisStore>>, run: u64, process: u64) -> u64 {
    let stream = |number: u64| {
        let (limiter, seed) = (Arc::clone(limiter), (run * PROCESSES + process) * STREAMS + number);
        tokio::spawn(async move { run_stream(&limiter, run, Random::new(seed)).await })
    };
    let streams: Vec<_> = (0..STREAMS / PROCESSES).map(stream).collect();
    let mut used = 0;
    for stream in streams {
        used += stream.await.unwrap();
    }
    used
}

/// Does the runs that the parent writes to standard input, as `RUN PROCESS`.
fn work(url: &str) {
    block_on(async {
        let limiter = Arc::new(limiter(url));
        for line in std::io::stdin().lines() {
            let line = line.unwrap();
            let (run, process) = line.split_once(' ').unwrap();
            let (run, process) = (run.parse().unwrap(), process.parse().unwrap());
            println!("\nused {}", run_streams(&limiter, run, process).await);
        }
    });
}

struct Worker {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start(server: &Server) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", TEST, "--nocapture"]).env(SERVER_VARIABLE, server.url());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output) }
    }

    fn begin(&mut self, run: u64, process: u64) {
        writeln!(self.input, "{run} {process}").unwrap();
    }

    fn used(&mut self) -> u64 {
        let mut lines = self.output.by_ref().lines().map(Result::unwrap);
        let used = lines.find_map(|line| line.strip_prefix("used ").map(str::to_owned));
        used.expect("a worker prints what its streams used").parse().unwrap()
    }

    fn stop(mut self) {
        drop(self.input);
        assert!(self.process.wait().unwrap().success());
    }
}

#[test]
fn streams_of_four_processes_never_use_more_than_the_limit() {
    if let Ok(url) = env::var(SERVER_VARIABLE) {
        return work(&url);
    }
    let server = Server::start(Flavor::Redis);
    let limiter = limiter(&server.url());
    let mut workers: Vec<Worker> = (0..PROCESSES).map(|_| Worker::start(&server)).collect();
    let mut highest = 0;
    for run in 0..runs() {
        (0..).zip(&mut workers).for_each(|(process, worker)| worker.begin(run, process));
        let used: u64 = workers.iter_mut().map(Worker::used).sum();
        assert!(used <= TOKENS, "run {run}: {used}");
        highest = highest.max(used);
        let left = block_on(async { limiter.peek(query(run, 1)).await.unwrap() });
        let remaining: Vec<u64> = left.statuses().map(|status| status.remaining()).collect();
        // A settlement of a token bucket gives back less than a token too little: what could have refilled since the take.
        let rounding = u64::from(limits(run)[0].algorithm() == Algorithm::TokenBucket);
        let least = (TOKENS - used).saturating_sub(rounding);
        assert!(
            (least..=TOKENS - used).contains(&remaining[0]),
            "run {run}: {remaining:?}, {used}"
        );
        assert_eq!(remaining[1], SLOTS, "run {run}");
    }
    println!("{} runs of {STREAMS} streams: at most {highest} of {TOKENS} tokens used", runs());
    workers.into_iter().for_each(Worker::stop);
}
