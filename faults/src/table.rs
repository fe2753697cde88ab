//! The table that is printed: what went wrong, how, what was seen, and whether that is what must be.

use std::time::Duration;

use crate::row::Row;

/// The first two lines.
pub fn head() -> String {
    "| row | fault | injected | seen | pass |\n|---|---|---|---|---|".to_owned()
}

/// A row that was played.
pub fn line(row: &Row, played: &Played) -> String {
    let seconds = played.took.as_secs_f64();
    let (seen, pass) = match &played.outcome {
        Ok(seen) => (seen, "yes"),
        Err(why) => (why, "**no**"),
    };
    let Row { number, fault, injected, .. } = row;
    format!("| {number} | {fault} | {injected} | {} ({seconds:.0} s) | {pass} |", cell(seen))
}

/// How a row went.
#[derive(Debug)]
pub struct Played {
    /// What was seen, or why that is not right.
    pub outcome: Result<String, String>,
    /// How long it took.
    pub took: Duration,
}

/// A text that breaks no table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A time as it is told: to the tenth of a millisecond where that is much.
pub fn shown(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.1} ms", seconds * 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{cell, shown};
    use std::time::Duration;

    #[test]
    fn what_was_seen_stays_in_its_cell() {
        assert_eq!(cell("left | right\n  next"), "left \\| right next");
    }

    #[test]
    fn times_are_told_in_their_size() {
        assert_eq!(shown(Duration::from_micros(1_540)), "1.5 ms");
        assert_eq!(shown(Duration::from_millis(61_000)), "61.0 s");
    }
}
