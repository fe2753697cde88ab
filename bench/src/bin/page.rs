//! Measures the cost of the dashboard for a node and prints a Markdown report.

use std::env;
use std::process::ExitCode;

use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::page::Programs;
use tollgate_bench::page::report::Report;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let programs = arguments.next().zip(arguments.next());
    match (programs, Arguments::parse("page", arguments)) {
        (Some((tollgate, redis)), Some(arguments)) => {
            let programs = Programs { tollgate: tollgate.into(), redis: redis.into() };
            let report = Report::measure(&programs, arguments.is_quick, arguments.run_info);
            cli::finish("page", report.map(|report| report.to_string()))
        }
        _ => cli::usage("page", &format!("TOLLGATE REDIS_SERVER {}", cli::OPTIONS)),
    }
}
