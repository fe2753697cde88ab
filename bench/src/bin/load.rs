//! Load generator for HTTP, RESP and gRPC. Prints rate, latencies and CPU times.

use std::env;
use std::process::ExitCode;

use tollgate_bench::grpc::call::Call;
use tollgate_bench::grpc::codec::{self as grpc, GrpcCodec};
use tollgate_bench::http::codec::{self as http, HttpCodec};
use tollgate_bench::load::run::run;
use tollgate_bench::load::sample::Sample;
use tollgate_bench::load::task::{OPTIONS, Task};
use tollgate_bench::resp::codec::{self as resp, RespCodec};
use tollgate_bench::resp::command::Command;
use tollgate_bench::{Outcome, cli};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.is_empty() {
        return cli::usage("load", OPTIONS);
    }
    let sample = Task::parse(&arguments).and_then(|task| execute(&task));
    cli::finish("load", sample.map(|sample| sample.to_string()))
}

fn execute(task: &Task) -> Outcome<Sample> {
    let words: Vec<&str> = task.requests.protocol.iter().map(String::as_str).collect();
    match words.as_slice() {
        [http::PROTOCOL, path, body] => run(task, || Ok(HttpCodec::post(path, body))),
        [resp::PROTOCOL, command] => run(task, || Ok(RespCodec::new(Command::parse(command)?))),
        [grpc::PROTOCOL, path] => run(task, || GrpcCodec::new(Call::parse(path)?)),
        _ => Err(format!("unknown protocol {}", words.join(" ")).into()),
    }
}
