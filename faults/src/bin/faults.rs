//! Plays the fault matrix and prints its table.

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use tollgate_faults::cli::{Query, USAGE};
use tollgate_faults::run::{chosen, play};
use tollgate_faults::{rows, table};

fn main() -> ExitCode {
    let Some(asked) = Query::parse(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let rows = chosen(&rows::all(), &asked.rows, asked.scale);
    if rows.is_empty() {
        eprintln!("faults: there is no such row");
        return ExitCode::from(2);
    }
    println!("{}", table::head());
    let (began, mut failed) = (Instant::now(), Vec::new());
    for row in &rows {
        eprintln!("row {}: {}", row.number, row.claim);
        let played = play(row, &asked.tollgate, asked.scale);
        println!("{}", table::line(row, &played));
        failed.extend(played.outcome.err().map(|_| row.number));
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!(
        "\n{} of {} rows pass, in {minutes:.1} minutes.",
        rows.len() - failed.len(),
        rows.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
