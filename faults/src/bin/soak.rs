//! Runs a soak and prints its figures.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use tollgate_faults::soak::{self, Failures, Soak};

const USAGE: &str = "usage: soak TOLLGATE SECONDS [--ignore-growth]";

fn main() -> ExitCode {
    let Some((soak, failures)) = parse(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let report = soak::run(&soak);
    print!("{report}");
    let failures = report.failures(failures);
    for failure in &failures {
        eprintln!("soak: {failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<(Soak, Failures)> {
    let tollgate = arguments.next()?.into();
    let length = arguments.next()?.parse().ok().filter(|seconds| *seconds >= 10)?;
    let failures = match arguments.next().as_deref() {
        None => Failures::All,
        Some("--ignore-growth") => Failures::WithoutGrowth,
        Some(_) => return None,
    };
    let is_complete = arguments.next().is_none();
    is_complete.then_some((Soak { tollgate, length: Duration::from_secs(length) }, failures))
}
