//! Selects models, runs each of them under two schedulers, and prints the number of runs.

use std::num::NonZeroUsize;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};
use tollgate::models::{Model, Search};

/// Stack of a modelled thread, in bytes: the product's code needs more than the default of 32 KiB.
const STACK: usize = 512 << 10;

/// Number of preemptions that the second scheduler places in a run. Most concurrency bugs need one or two.
const PREEMPTIONS: usize = 3;

/// Maximum number of runs of a model whose orders are all explored.
const MAX_RUNS_OF_ALL: usize = 1 << 24;

const USAGE: &str = "usage: tollgate-models [--runs N] [--seed N] [--replay SCHEDULE] [NAME]";

struct Arguments {
    runs: usize,
    seed: u64,
    replay: Option<String>,
    name: String,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut parsed = Self { runs: 10_000, seed: 1, replay: None, name: String::new() };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--runs" => parsed.runs = arguments.next()?.parse().ok()?,
                "--seed" => parsed.seed = arguments.next()?.parse().ok()?,
                "--replay" => parsed.replay = Some(arguments.next()?),
                name if name.starts_with('-') || !parsed.name.is_empty() => return None,
                name => name.clone_into(&mut parsed.name),
            }
        }
        (parsed.runs > 0).then_some(parsed)
    }
}

pub(crate) fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let all = [tollgate::models::ALL, tollgate_redis::models::ALL, tollgate_tower::models::ALL];
    let chosen: Vec<&Model> =
        all.into_iter().flatten().filter(|model| model.name.contains(&arguments.name)).collect();
    if chosen.is_empty() {
        eprintln!("tollgate-models: no model has `{}` in its name", arguments.name);
        return ExitCode::from(2);
    }
    let begun = Instant::now();
    let results = run_all(&chosen, &arguments);
    let total: usize = results.iter().map(|(_, runs)| runs.unwrap_or(0)).sum();
    let time = begun.elapsed().as_secs_f64();
    println!("{} models, {total} runs, {time:.1} s", results.len());
    let failed: Vec<&str> =
        results.iter().filter(|(_, runs)| runs.is_none()).map(|(model, _)| model.name).collect();
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("tollgate-models: failed: {}", failed.join(", "));
    ExitCode::FAILURE
}

/// Runs models on all cores. Returns each with the number of runs, `None` if it failed.
fn run_all<'m>(models: &[&'m Model], arguments: &Arguments) -> Vec<(&'m Model, Option<usize>)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        while let Some(model) = models.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            let runs = run(model, arguments);
            let time = begun.elapsed().as_secs_f64();
            match runs {
                Some(runs) => println!("{:<72} {runs:>8} runs {time:>6.1} s", model.name),
                None => println!("{:<72} FAILED with seed {}", model.name, arguments.seed),
            }
            results.push((*model, runs));
        }
        results
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    })
}

/// Runs a model. Returns the number of runs, `None` if it failed.
fn run(model: &Model, arguments: &Arguments) -> Option<usize> {
    let (seed, body) = (arguments.seed, model.run);
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        if let Some(schedule) = &arguments.replay {
            return explore(ReplayScheduler::new_from_encoded(schedule), body);
        }
        match model.search {
            Search::All => explore(DfsScheduler::new(Some(MAX_RUNS_OF_ALL), false), body),
            Search::Sample => {
                // Two schedulers find different orders: one decides each step at random, the other one places few
                // preemptions.
                let half = arguments.runs.div_ceil(2);
                explore(RandomScheduler::new_from_seed(seed, half), body)
                    + explore(PctScheduler::new_from_seed(seed, PREEMPTIONS, half), body)
            }
        }
    }));
    result.ok()
}

fn explore(scheduler: impl Scheduler + 'static, body: fn()) -> usize {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.failure_persistence = FailurePersistence::Print;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(body)
}
