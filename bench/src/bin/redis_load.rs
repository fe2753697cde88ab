//! Redis load generator with concurrent callers. Prints rate, latencies and CPU times.

use std::env;
use std::process::ExitCode;

use tollgate_bench::cli;
use tollgate_bench::redis::load;
use tollgate_bench::redis::task::{OPTIONS, Task};

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1).peekable();
    if arguments.peek().is_none() {
        return cli::usage("redis_load", OPTIONS);
    }
    let sample = Task::parse(arguments).and_then(|task| load::run(&task));
    cli::finish("redis_load", sample.map(|sample| sample.to_string()))
}
