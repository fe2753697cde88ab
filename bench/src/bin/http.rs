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
    let programs = [arguments.next(), arguments.next(), arguments.next()];
    match (programs, Arguments::parse("http", arguments)) {
        ([Some(tollgate), Some(throttlecrab), Some(limitador)], Some(arguments)) => {
            let programs = [tollgate, throttlecrab, limitador].map(PathBuf::from);
            cli::finish("http", report(programs, arguments))
        }
        _ => {
            let options = format!("TOLLGATE THROTTLECRAB_SERVER LIMITADOR_RLS {}", cli::OPTIONS);
            cli::usage("http", &options)
        }
    }
}

fn report(
    [tollgate, throttlecrab, limitador]: [PathBuf; 3],
    arguments: Arguments,
) -> Outcome<String> {
    let here = env::current_exe()?;
    let programs = Programs {
        tollgate,
        throttlecrab,
        limitador,
        // Built into the same directory.
        constant: here.with_file_name("axum_constant"),
        load: here.with_file_name("load"),
        cores: Cores::Pinned,
    };
    let scale = if arguments.is_quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, &programs, arguments.run_info)?.to_string())
}
