//! Prints the HTTP front end's benchmarks as one markdown document.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::cli::{self, Query};
use tollgate_bench::http::contender::Stage;
use tollgate_bench::http::report::Report;
use tollgate_bench::http::scale::Scale;
use tollgate_bench::server::Cores;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let programs = arguments.next().zip(arguments.next());
    match programs.zip(Query::parse("http", arguments)) {
        Some(((tollgate, throttlecrab), asked)) => {
            cli::finish("http", report(tollgate.into(), throttlecrab.into(), asked))
        }
        None => cli::usage("http", &format!("TOLLGATE THROTTLECRAB_SERVER {}", cli::OPTIONS)),
    }
}

fn report(tollgate: PathBuf, throttlecrab: PathBuf, asked: Query) -> Outcome<String> {
    let here = env::current_exe()?;
    let stage = Stage {
        tollgate,
        throttlecrab,
        // They are built together.
        constant: here.with_file_name("axum_constant"),
        load: here.with_file_name("http_load"),
        cores: Cores::Apart,
    };
    let scale = if asked.quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, &stage, asked.given)?.to_string())
}
