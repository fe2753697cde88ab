//! Prints the chart of the README, given the path of `docs/BENCHMARKS.md`.

use std::env;
use std::process::ExitCode;

use tollgate_bench::{Outcome, cli, peer_chart};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [benchmarks] => cli::finish("chart", chart(benchmarks)),
        _ => cli::usage("chart", "BENCHMARKS.md"),
    }
}

fn chart(benchmarks: &str) -> Outcome<String> {
    let text =
        std::fs::read_to_string(benchmarks).map_err(|error| format!("{benchmarks}: {error}"))?;
    peer_chart::draw(&text)
}
