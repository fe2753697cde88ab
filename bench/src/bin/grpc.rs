//! Benchmarks the gRPC server and prints a Markdown report.

use std::env;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::grpc::candidate::Programs;
use tollgate_bench::grpc::report::Report;
use tollgate_bench::load::scale::Scale;
use tollgate_bench::server::Cores;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let parsed = arguments.split_first_chunk().and_then(|(programs, rest)| {
        Some((programs, Arguments::parse("grpc", rest.iter().cloned())?))
    });
    match parsed {
        Some((programs, arguments)) => cli::finish("grpc", report(programs, arguments)),
        None => {
            let programs = "TOLLGATE THROTTLECRAB_SERVER LIMITADOR_SERVER";
            cli::usage("grpc", &format!("{programs} {}", cli::OPTIONS))
        }
    }
}

fn report(
    [tollgate, throttlecrab, limitador]: &[String; 3],
    arguments: Arguments,
) -> Outcome<String> {
    let here = env::current_exe()?;
    let programs = Programs {
        tollgate: tollgate.into(),
        throttlecrab: throttlecrab.into(),
        limitador: limitador.into(),
        // Built into the same directory.
        constant: here.with_file_name("grpc_constant"),
        load: here.with_file_name("load"),
        cores: Cores::Pinned,
    };
    let scale = if arguments.is_quick { Scale::QUICK } else { Scale::FULL };
    Ok(Report::measure(scale, &programs, arguments.run_info)?.to_string())
}
