//! The baseline server of the HTTP benchmarks: axum with a constant response.

use std::env;
use std::process::ExitCode;

use tollgate_bench::http::constant;
use tollgate_bench::{Outcome, cli};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [listen, path, bytes] = arguments.as_slice() else {
        return cli::usage("axum_constant", "ADDRESS PATH BODY_BYTES");
    };
    cli::finish("axum_constant", serve(listen, path, bytes))
}

fn serve(listen: &str, path: &str, bytes: &str) -> Outcome<String> {
    constant::serve(listen.parse()?, constant::router(path, bytes.parse()?))?;
    Ok(String::new())
}
