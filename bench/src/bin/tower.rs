//! Benchmarks the Tower layer and prints a Markdown report.

use std::env;
use std::process::ExitCode;

use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::layer::report::Report;

fn main() -> ExitCode {
    match Arguments::parse("tower", env::args().skip(1)) {
        Some(arguments) => {
            let report = Report::measure(arguments.is_quick, arguments.run_info);
            cli::finish("tower", report.map(|report| report.to_string()))
        }
        None => cli::usage("tower", cli::OPTIONS),
    }
}
