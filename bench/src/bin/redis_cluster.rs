//! Benchmarks the Redis store on a cluster and prints a Markdown report.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::redis::cluster_report::ClusterReport;
use tollgate_bench::redis::deployment::Programs;
use tollgate_bench::redis::scale::Scale;
use tollgate_bench::server::Cores;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let usage = format!("REDIS_SERVER {}", cli::OPTIONS);
    let Some(redis) = arguments.next() else {
        return cli::usage("redis_cluster", &usage);
    };
    let Some(arguments) = Arguments::parse("redis --cluster", arguments) else {
        return cli::usage("redis_cluster", &usage);
    };
    cli::finish("redis_cluster", report(redis.into(), arguments))
}

fn report(redis: PathBuf, arguments: Arguments) -> Outcome<String> {
    // Built into the same directory.
    let load = env::current_exe()?.with_file_name("redis_load");
    let programs = Programs { redis, cell: None, load, cores: Cores::Pinned };
    let scale = if arguments.is_quick { Scale::QUICK } else { Scale::FULL };
    Ok(ClusterReport::measure(scale, &programs, arguments.run_info)?.to_string())
}
