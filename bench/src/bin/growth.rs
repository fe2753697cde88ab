//! Benchmarks growth, writes the curves to the given SVG file and prints a Markdown report.

use std::env;
use std::process::ExitCode;

use tollgate_bench::Outcome;
use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::growth::report::Report;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    match (arguments.next(), Arguments::parse("growth", arguments)) {
        (Some(image), Some(arguments)) => cli::finish("growth", report(&image, arguments)),
        _ => cli::usage("growth", &format!("IMAGE {}", cli::OPTIONS)),
    }
}

fn report(image: &str, arguments: Arguments) -> Outcome<String> {
    let report = Report::measure(arguments.is_quick, arguments.run_info)?;
    std::fs::write(image, report.image()).map_err(|error| format!("{image}: {error}"))?;
    Ok(report.to_string())
}
