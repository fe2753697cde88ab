//! Benchmarks the core library and prints a Markdown report.

use std::env;
use std::process::ExitCode;

use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::report::Report;
use tollgate_bench::scale::Scale;
use tollgate_bench::{Outcome, memory};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == memory::CHILD => cli::finish("core", memory::child(rest)),
        _ => match Arguments::parse("core", arguments) {
            Some(arguments) => cli::finish("core", report(arguments)),
            None => cli::usage("core", cli::OPTIONS),
        },
    }
}

fn report(arguments: Arguments) -> Outcome<String> {
    let scale = if arguments.is_quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, &env::current_exe()?, arguments.run_info)?.to_string())
}
