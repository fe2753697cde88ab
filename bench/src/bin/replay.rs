//! Measures `tollgate replay` and prints a Markdown report, or writes an access log.

use std::env;
use std::path::Path;
use std::process::ExitCode;

use tollgate_bench::cli::{self, Arguments};
use tollgate_bench::replay::access_log;
use tollgate_bench::replay::report::Report;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [flag, lines, file] = arguments.as_slice()
        && flag == "--generate"
        && let Ok(lines) = lines.parse()
    {
        let written = access_log::write(Path::new(file), lines);
        return cli::finish("replay", written.map(|()| String::new()).map_err(Into::into));
    }
    let mut arguments = arguments.into_iter();
    match (arguments.next(), Arguments::parse("replay", arguments)) {
        (Some(tollgate), Some(arguments)) => {
            let report =
                Report::measure(Path::new(&tollgate), arguments.is_quick, arguments.run_info);
            cli::finish("replay", report.map(|report| report.to_string()))
        }
        _ => cli::usage("replay", &format!("TOLLGATE {} | --generate LINES FILE", cli::OPTIONS)),
    }
}
