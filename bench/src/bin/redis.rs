//! Benchmarks the Redis store and prints a Markdown report.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::redis::deployment::Programs;
use tollgate_bench::redis::report::Report;
use tollgate_bench::redis::scale::Scale;
use tollgate_bench::server::Cores;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let usage = format!("REDIS_SERVER REDIS_CELL_MODULE REDIS_CELL_VERSION {}", cli::OPTIONS);
    let [redis, module, version, options @ ..] = arguments.as_slice() else {
        return cli::usage("redis", &usage);
    };
    let Some(arguments) = Arguments::parse("redis", options.iter().cloned()) else {
        return cli::usage("redis", &usage);
    };
    cli::finish("redis", report(redis.into(), (module.into(), version.clone()), arguments))
}

fn report(redis: PathBuf, cell: (PathBuf, String), arguments: Arguments) -> Outcome<String> {
    // Built into the same directory.
    let load = env::current_exe()?.with_file_name("redis_load");
    let programs = Programs { redis, cell: Some(cell), load, cores: Cores::Pinned };
    let scale = if arguments.is_quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, programs, arguments.run_info)?.to_string())
}
