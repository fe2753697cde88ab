//! Prints the benchmarks of decisions by a cluster as one markdown document.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::cli::{self, Query};
use tollgate_bench::redis::cluster_report::ClusterReport;
use tollgate_bench::redis::scale::Scale;
use tollgate_bench::redis::stage::Programs;
use tollgate_bench::server::Cores;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let usage = format!("REDIS_SERVER {}", cli::OPTIONS);
    let Some(redis) = arguments.next() else {
        return cli::usage("redis_cluster", &usage);
    };
    let Some(asked) = Query::parse("redis --cluster", arguments) else {
        return cli::usage("redis_cluster", &usage);
    };
    cli::finish("redis_cluster", report(redis.into(), asked))
}

fn report(redis: PathBuf, asked: Query) -> Outcome<String> {
    // They are built together.
    let load = env::current_exe()?.with_file_name("redis_load");
    let programs = Programs { redis, cell: None, load, cores: Cores::Apart };
    let scale = if asked.quick { Scale::QUICK } else { Scale::FULL };
    Ok(ClusterReport::measure(scale, &programs, asked.given)?.to_string())
}
