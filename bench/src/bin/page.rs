//! Prints what the dashboard costs a node as one markdown document.

use std::env;
use std::process::ExitCode;

use tollgate_bench::cli::{self, Query};
use tollgate_bench::page::Programs;
use tollgate_bench::page::report::Report;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let programs = arguments.next().zip(arguments.next());
    match (programs, Query::parse("page", arguments)) {
        (Some((tollgate, redis)), Some(asked)) => {
            let programs = Programs { tollgate: tollgate.into(), redis: redis.into() };
            let report = Report::measure(&programs, asked.quick, asked.given);
            cli::finish("page", report.map(|report| report.to_string()))
        }
        _ => cli::usage("page", &format!("TOLLGATE REDIS_SERVER {}", cli::OPTIONS)),
    }
}
