//! Runs the fault matrix and prints its table.

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use tollgate_faults::cli::{Arguments, USAGE};
use tollgate_faults::run::{run_row, selected};
use tollgate_faults::{rows, table};

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let rows = selected(&rows::all(), &arguments.rows, arguments.scale);
    if rows.is_empty() {
        eprintln!("faults: no such row; see docs/FAULTS.md for the numbers");
        return ExitCode::from(2);
    }
    println!("{}", table::head());
    let (began, mut failed) = (Instant::now(), Vec::new());
    for row in &rows {
        eprintln!("row {}: {}", row.number, row.claim);
        let result = run_row(row, &arguments.tollgate, arguments.scale);
        println!("{}", table::line(row, &result));
        failed.extend(result.outcome.err().map(|_| row.number));
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!(
        "\n{} of {} rows pass, in {minutes:.1} minutes.",
        rows.len() - failed.len(),
        rows.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
