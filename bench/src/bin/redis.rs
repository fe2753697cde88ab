//! Prints the benchmarks of decisions by Redis as one markdown document.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::cli::{self, Query};
use tollgate_bench::redis::report::Report;
use tollgate_bench::redis::scale::Scale;
use tollgate_bench::redis::stage::Programs;
use tollgate_bench::server::Cores;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let usage = format!("REDIS_SERVER REDIS_CELL_MODULE REDIS_CELL_VERSION {}", cli::OPTIONS);
    let [redis, module, version, options @ ..] = arguments.as_slice() else {
        return cli::usage("redis", &usage);
    };
    let Some(asked) = Query::parse("redis", options.iter().cloned()) else {
        return cli::usage("redis", &usage);
    };
    cli::finish("redis", report(redis.into(), (module.into(), version.clone()), asked))
}

fn report(redis: PathBuf, cell: (PathBuf, String), asked: Query) -> Outcome<String> {
    // They are built together.
    let load = env::current_exe()?.with_file_name("redis_load");
    let programs = Programs { redis, cell: Some(cell), load, cores: Cores::Apart };
    let scale = if asked.quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, programs, asked.given)?.to_string())
}
