//! Benchmarks forward auth behind nginx and prints a Markdown report.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::auth::candidate::Programs;
use tollgate_bench::auth::report::Report;
use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::load::scale::Scale;
use tollgate_bench::server::Cores;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let programs = arguments.next().zip(arguments.next());
    match programs.zip(Arguments::parse("auth", arguments)) {
        Some(((tollgate, nginx), arguments)) => {
            cli::finish("auth", report(tollgate.into(), nginx.into(), arguments))
        }
        None => cli::usage("auth", &format!("TOLLGATE NGINX {}", cli::OPTIONS)),
    }
}

fn report(tollgate: PathBuf, nginx: PathBuf, arguments: Arguments) -> Outcome<String> {
    let here = env::current_exe()?;
    let programs = Programs {
        tollgate,
        nginx,
        // Built into the same directory.
        constant: here.with_file_name("axum_constant"),
        load: here.with_file_name("load"),
        cores: Cores::Pinned,
    };
    let scale = if arguments.is_quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, &programs, arguments.run_info)?.to_string())
}
