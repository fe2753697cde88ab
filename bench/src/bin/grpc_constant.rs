//! The baseline server of the gRPC benchmarks: tonic with a constant response.

use std::env;
use std::process::ExitCode;

use tollgate_bench::grpc::constant;
use tollgate_bench::{Outcome, cli};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [listen, response] = arguments.as_slice() else {
        return cli::usage("grpc_constant", "ADDRESS RESPONSE_IN_HEX");
    };
    cli::finish("grpc_constant", serve(listen, response))
}

fn serve(listen: &str, response: &str) -> Outcome<String> {
    constant::serve(listen.parse()?, constant::parse(response)?)?;
    Ok(String::new())
}
