//! The baseline server of the RESP benchmarks: tokio with a constant reply.

use std::env;
use std::process::ExitCode;

use tollgate_bench::resp::constant;
use tollgate_bench::{Outcome, cli};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [listen, reply] = arguments.as_slice() else {
        return cli::usage("resp_constant", "ADDRESS REPLY");
    };
    cli::finish("resp_constant", serve(listen, reply))
}

fn serve(listen: &str, reply: &str) -> Outcome<String> {
    constant::serve(listen.parse()?, reply)?;
    Ok(String::new())
}
