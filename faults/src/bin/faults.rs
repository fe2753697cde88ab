//! Runs the fault matrix and prints its table.

use std::env;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use tollgate_faults::cli::{Arguments, USAGE};
use tollgate_faults::row::Row;
use tollgate_faults::run::{phases, run_row, selected};
use tollgate_faults::{jobs, page, rows, table};

/// The number of waiting rows that run at the same time.
const WAITING_JOBS: usize = 3;

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
    let (began, mut passed, mut lines) = (Instant::now(), 0, Vec::new());
    let finished = |row: &Row, line: String, is_passed: bool| {
        println!("{line}");
        lines.push((row.number, line));
        passed += usize::from(is_passed);
    };
    if let Err(error) = run(&rows, &arguments, finished) {
        eprintln!("faults: cannot start a process for a row: {error}");
        return ExitCode::FAILURE;
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let summary = format!("{passed} of {} rows pass, in {minutes:.1} minutes.", rows.len());
    println!("\n{summary}");
    if let Some(path) = &arguments.page {
        lines.sort();
        let lines = lines.into_iter().map(|(_, line)| format!("\n{line}"));
        let table = table::head() + &lines.collect::<String>();
        if let Err(error) = page::write(path, &table, &summary) {
            eprintln!("faults: cannot write {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    if passed == rows.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the rows, one after the other or several at a time. In a full run of all rows, the waiting rows follow the others,
/// several at a time.
fn run(
    rows: &[Row],
    arguments: &Arguments,
    mut finished: impl FnMut(&Row, String, bool),
) -> io::Result<()> {
    if arguments.jobs > 1 {
        return jobs::run_all(rows, arguments, finished);
    }
    let (waiting, alone) = phases(rows, arguments);
    for row in alone {
        eprintln!("row {}: {}", row.number, row.claim);
        let result = run_row(&row, &arguments.tollgate, arguments.scale, arguments.timing);
        finished(&row, table::line(&row, &result), result.outcome.is_ok());
    }
    let jobs = WAITING_JOBS.min(waiting.len());
    jobs::run_all(&waiting, &Arguments { jobs, ..arguments.clone() }, finished)
}
