//! Prints the benchmarks of the layer as one markdown document.

use std::env;
use std::process::ExitCode;

use tollgate_bench::cli::{self, Query};
use tollgate_bench::layer::report::Report;

fn main() -> ExitCode {
    match Query::parse("tower", env::args().skip(1)) {
        Some(asked) => {
            let report = Report::measure(asked.quick, asked.given);
            cli::finish("tower", report.map(|report| report.to_string()))
        }
        None => cli::usage("tower", cli::OPTIONS),
    }
}
