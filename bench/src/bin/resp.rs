//! Benchmarks the RESP server and prints a Markdown report.

use std::env;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::load::scale::Scale;
use tollgate_bench::resp::candidate::Programs;
use tollgate_bench::resp::report::Report;
use tollgate_bench::server::Cores;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let parsed = arguments.split_first_chunk().and_then(|(programs, rest)| {
        Some((programs, Arguments::parse("resp", rest.iter().cloned())?))
    });
    match parsed {
        Some((programs, arguments)) => cli::finish("resp", report(programs, arguments)),
        None => {
            let programs = "TOLLGATE THROTTLECRAB_SERVER REDIS_SERVER";
            cli::usage("resp", &format!("{programs} {}", cli::OPTIONS))
        }
    }
}

fn report([tollgate, throttlecrab, redis]: &[String; 3], arguments: Arguments) -> Outcome<String> {
    let here = env::current_exe()?;
    let programs = Programs {
        tollgate: tollgate.into(),
        throttlecrab: throttlecrab.into(),
        redis: redis.into(),
        // Built into the same directory.
        constant: here.with_file_name("resp_constant"),
        load: here.with_file_name("load"),
        cores: Cores::Pinned,
    };
    let scale = if arguments.is_quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, &programs, arguments.run_info)?.to_string())
}
