//! Counts the instructions of the guarded paths and compares them with the baseline.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use tollgate_bench::instructions::baseline::{Baseline, Environment};
use tollgate_bench::instructions::comparison::Comparison;
use tollgate_bench::instructions::in_process;
use tollgate_bench::instructions::measurement::{CHILD, Programs};
use tollgate_bench::instructions::path::GuardedPath;
use tollgate_bench::{Outcome, cli};

const PROGRAM: &str = "instructions";
const OPTIONS: &str = "VALGRIND TOLLGATE BASELINE RUSTC LIBC CPU [--update | PATH…]";

/// How often a path that has grown is measured if its work depends on time. The lowest count is compared.
const MEASUREMENTS: usize = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [CHILD, path, decisions] => cli::finish(PROGRAM, run(path, decisions)),
        [valgrind, tollgate, baseline, rustc, libc, cpu, rest @ ..] => {
            let environment =
                Environment { rustc: (*rustc).into(), libc: (*libc).into(), cpu: (*cpu).into() };
            let programs = [valgrind, tollgate].map(PathBuf::from);
            let done = match rest {
                ["--update"] => update(&programs, baseline, environment),
                paths => compare(&programs, baseline, environment, paths),
            };
            cli::finish(PROGRAM, done)
        }
        _ => cli::usage(PROGRAM, OPTIONS),
    }
}

fn run(path: &str, decisions: &str) -> Outcome<String> {
    in_process::run(GuardedPath::parse(path)?, decisions.parse()?)?;
    Ok(String::new())
}

/// Measures all paths and writes the baseline.
fn update(programs: &[PathBuf; 2], baseline: &str, environment: Environment) -> Outcome<String> {
    let text = measure(programs, environment, &GuardedPath::ALL)?.to_string();
    fs::write(baseline, &text).map_err(|error| format!("{baseline}: {error}"))?;
    Ok(text)
}

/// Measures these paths, or all, and compares them with the baseline.
fn compare(
    programs: &[PathBuf; 2],
    baseline: &str,
    environment: Environment,
    paths: &[&str],
) -> Outcome<String> {
    let paths = paths.iter().map(|name| GuardedPath::parse(name)).collect::<Outcome<Vec<_>>>()?;
    let paths = if paths.is_empty() { GuardedPath::ALL.to_vec() } else { paths };
    let text = fs::read_to_string(baseline).map_err(|error| format!("{baseline}: {error}"))?;
    let before = Baseline::parse(&text).map_err(|error| format!("{baseline}: {error}"))?;
    let mut now = measure(programs, environment, &paths)?;
    for path in paths {
        for _ in 1..MEASUREMENTS {
            if (Comparison { baseline: &before, now: &now }).may_be_noise(path) {
                now.lower(path, measure_one(programs, path)?);
            }
        }
    }
    let comparison = Comparison { baseline: &before, now: &now };
    let failures = comparison.failures();
    if failures.is_empty() {
        return Ok(comparison.to_string());
    }
    print!("{comparison}");
    Err(failures.join("\ninstructions: ").into())
}

fn measure(
    programs: &[PathBuf; 2],
    environment: Environment,
    paths: &[GuardedPath],
) -> Outcome<Baseline> {
    let counts = paths.iter().map(|path| Ok((*path, measure_one(programs, *path)?)));
    Ok(Baseline { environment, counts: counts.collect::<Outcome<_>>()? })
}

fn measure_one([valgrind, tollgate]: &[PathBuf; 2], path: GuardedPath) -> Outcome<u64> {
    let (valgrind, tollgate) = (valgrind.clone(), tollgate.clone());
    Programs { valgrind, tollgate, instructions: env::current_exe()? }.measure(path)
}
