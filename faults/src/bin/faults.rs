//! Runs the fault matrix and prints its table.

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use tollgate_faults::cli::{Arguments, USAGE};
use tollgate_faults::row::Row;
use tollgate_faults::run::{run_row, selected};
use tollgate_faults::{jobs, rows, table};

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
    let (began, mut passed) = (Instant::now(), 0);
    let finished = |line: String, is_passed: bool| {
        println!("{line}");
        passed += usize::from(is_passed);
    };
    if let Err(error) = run(&rows, &arguments, finished) {
        eprintln!("faults: cannot start a process for a row: {error}");
        return ExitCode::FAILURE;
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!("\n{passed} of {} rows pass, in {minutes:.1} minutes.", rows.len());
    if passed == rows.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the rows, one after the other or several at a time.
fn run(
    rows: &[Row],
    arguments: &Arguments,
    mut finished: impl FnMut(String, bool),
) -> std::io::Result<()> {
    if arguments.jobs > 1 {
        return jobs::run_all(rows, arguments, finished);
    }
    for row in rows {
        eprintln!("row {}: {}", row.number, row.claim);
        let result = run_row(row, &arguments.tollgate, arguments.scale, arguments.timing);
        finished(table::line(row, &result), result.outcome.is_ok());
    }
    Ok(())
}
