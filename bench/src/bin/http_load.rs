//! HTTP load generator. Prints rate, latencies and CPU times.

use std::env;
use std::process::ExitCode;

use tollgate_bench::cli;
use tollgate_bench::http::load;
use tollgate_bench::http::task::{OPTIONS, Task};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.is_empty() {
        return cli::usage("http_load", OPTIONS);
    }
    let sample = Task::parse(&arguments).and_then(|task| load::run(&task));
    cli::finish("http_load", sample.map(|sample| sample.to_string()))
}
