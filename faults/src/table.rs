//! The printed table: fault, injection, result, and whether the row passes.

use std::process::ExitStatus;
use std::time::Duration;

use crate::row::Row;

/// The two header lines.
pub fn head() -> String {
    "| row | fault | injected | seen | pass |\n|---|---|---|---|---|".to_owned()
}

/// The line of a row that was run.
pub fn line(row: &Row, result: &RowResult) -> String {
    let seconds = result.took.as_secs_f64();
    let (seen, pass) = match &result.outcome {
        Ok(seen) => (seen, "yes"),
        Err(failure) => (failure, "**no**"),
    };
    format!("{} {} ({seconds:.0} s) | {pass} |", begin(row), cell(seen))
}

/// The line of a row whose process ended without a result.
pub(crate) fn crashed(row: &Row, status: ExitStatus) -> String {
    format!("{} no result: {status} | **no** |", begin(row))
}

/// The begin of the line of a row, up to what was seen.
pub(crate) fn begin(row: &Row) -> String {
    let Row { number, fault, injected, .. } = row;
    format!("| {number} | {fault} | {injected} |")
}

/// The result of a row.
#[derive(Debug)]
pub struct RowResult {
    /// What was seen, or the failed assertion.
    pub outcome: Result<String, String>,
    /// The duration of the row.
    pub took: Duration,
}

/// Escapes a text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Formats a time in seconds, or in milliseconds below one second, with one decimal.
pub fn format_time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.1} ms", seconds * 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{cell, format_time};
    use std::time::Duration;

    #[test]
    fn cells_escape_pipes_and_newlines() {
        assert_eq!(cell("left | right\n  next"), "left \\| right next");
    }

    #[test]
    fn times_below_a_second_are_in_milliseconds() {
        assert_eq!(format_time(Duration::from_micros(1_540)), "1.5 ms");
        assert_eq!(format_time(Duration::from_millis(61_000)), "61.0 s");
    }
}
