//! Benchmarks the HTTP server and prints a Markdown report.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::http::candidate::Programs;
use tollgate_bench::http::report::Report;
use tollgate_bench::http::scale::Scale;
use tollgate_bench::server::Cores;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let programs = arguments.next().zip(arguments.next());
    match programs.zip(Arguments::parse("http", arguments)) {
        Some(((tollgate, throttlecrab), arguments)) => {
            cli::finish("http", report(tollgate.into(), throttlecrab.into(), arguments))
        }
        None => cli::usage("http", &format!("TOLLGATE THROTTLECRAB_SERVER {}", cli::OPTIONS)),
    }
}

fn report(tollgate: PathBuf, throttlecrab: PathBuf, arguments: Arguments) -> Outcome<String> {
    let here = env::current_exe()?;
    let programs = Programs {
        tollgate,
        throttlecrab,
        // Built into the same directory.
        constant: here.with_file_name("axum_constant"),
        load: here.with_file_name("load"),
        cores: Cores::Pinned,
    };
    let scale = if arguments.is_quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, &programs, arguments.run_info)?.to_string())
}
