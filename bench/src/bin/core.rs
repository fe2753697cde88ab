//! Prints the core library's benchmarks as one markdown document.

use std::env;
use std::process::ExitCode;

use tollgate_bench::cli::{self, Query};
use tollgate_bench::report::Report;
use tollgate_bench::scale::Scale;
use tollgate_bench::{Outcome, memory};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == memory::CHILD => cli::finish("core", memory::child(rest)),
        _ => match Query::parse("core", arguments) {
            Some(asked) => cli::finish("core", report(asked)),
            None => cli::usage("core", cli::OPTIONS),
        },
    }
}

fn report(asked: Query) -> Outcome<String> {
    let scale = if asked.quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, &env::current_exe()?, asked.given)?.to_string())
}
