//! Runs one row in this process.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::cli::Arguments;
use crate::row::{Pace, Row};
use crate::rows::WAITING;
use crate::scale::Scale;
use crate::stage::Stage;
use crate::table::RowResult;
use crate::timing::Timing;

/// Selects rows by number; without numbers all rows, or the quick ones in a quick run.
pub fn selected(all: &[Row], numbers: &[u8], scale: Scale) -> Vec<Row> {
    let is_selected = |row: &&Row| match numbers {
        [] => scale == Scale::Full || row.pace == Pace::Quick,
        some => some.contains(&row.number),
    };
    all.iter().filter(is_selected).copied().collect()
}

/// Splits the rows of a run: those that mostly wait, which run several at a time, and those that run alone. Only in a full run of
/// all rows: a process that runs a row for such a run has its number, and must not start further processes.
pub fn phases(rows: &[Row], arguments: &Arguments) -> (Vec<Row>, Vec<Row>) {
    let is_full = arguments.scale == Scale::Full && arguments.rows.is_empty();
    rows.iter().partition(|row| is_full && WAITING.contains(&row.number))
}

/// Runs one row, then searches the output of its nodes for secrets.
pub fn run_row(row: &Row, tollgate: &Path, scale: Scale, timing: Timing) -> RowResult {
    let (began, stage) = (Instant::now(), Stage::new(tollgate.to_owned(), scale, timing));
    let panics = PanicMessages::record();
    let result = panic::catch_unwind(AssertUnwindSafe(|| (row.run)(&stage)));
    let messages = panics.stop();
    let outcome = match (result, stage.witness().leak()) {
        (Err(_), _) => Err(format!("{}: {messages}", row.claim)),
        (Ok(_), Some(leak)) => Err(leak),
        (Ok(seen), None) => Ok(stage.bounds().annotate(seen)),
    };
    RowResult { outcome, took: began.elapsed() }
}

/// The maximum number of panic messages in a result.
const MAX_MESSAGES: usize = 3;

/// Panic messages of all threads while a row runs, including threads that nothing joins.
struct PanicMessages(Arc<Mutex<Vec<String>>>);

impl PanicMessages {
    fn record() -> Self {
        let all = Arc::new(Mutex::new(Vec::new()));
        let messages = Arc::clone(&all);
        panic::set_hook(Box::new(move |info| {
            messages.lock().unwrap_or_else(PoisonError::into_inner).push(message(info));
        }));
        Self(all)
    }

    /// Returns the first messages. The first one is usually the cause of the others.
    fn stop(self) -> String {
        drop(panic::take_hook());
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().take(MAX_MESSAGES).cloned().collect::<Vec<_>>().join("; then ")
    }
}

fn message(info: &PanicHookInfo<'_>) -> String {
    let text = info.payload_as_str().unwrap_or("panicked without a message");
    let location =
        info.location().map(|location| format!("{}:{}", location.file(), location.line()));
    format!("{text} ({})", location.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Arguments, Row, Scale, phases, run_row, selected};
    use crate::row::Pace;
    use crate::timing::Timing;

    fn row(number: u8, pace: Pace, run: fn(&crate::stage::Stage) -> String) -> Row {
        let (fault, injected, claim) = ("a fault", "an injection", "service_survives");
        Row { number, fault, injected, claim, pace, run }
    }

    #[test]
    fn rows_are_selected_by_number_or_pace() {
        let all = [row(1, Pace::Quick, |_| String::new()), row(2, Pace::Slow, |_| String::new())];
        let numbers = |numbers: &[u8], scale| {
            selected(&all, numbers, scale).iter().map(|row| row.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[], Scale::Full), [1, 2]);
        assert_eq!(numbers(&[], Scale::Quick), [1]);
        assert_eq!(numbers(&[2], Scale::Quick), [2]);
    }

    #[test]
    fn process_of_one_row_runs_it_itself() {
        let all = [row(1, Pace::Quick, |_| String::new()), row(2, Pace::Quick, |_| String::new())];
        let numbers = |line: &str| {
            let arguments = line.split_whitespace().map(str::to_owned);
            let (waiting, alone) = phases(&all, &Arguments::parse(arguments).unwrap());
            [waiting, alone].map(|rows| rows.iter().map(|row| row.number).collect::<Vec<_>>())
        };
        assert_eq!(numbers("tollgate"), [vec![1], vec![2]]);
        assert_eq!(numbers("tollgate 1 2"), [vec![], vec![1, 2]]);
        assert_eq!(numbers("tollgate --quick"), [vec![], vec![1, 2]]);
    }

    #[test]
    fn rows_fail_by_panic_and_by_leaked_secret() {
        let outcome = |run| {
            let row = row(1, Pace::Quick, run);
            run_row(&row, Path::new("none"), Scale::Quick, Timing::Report).outcome
        };
        let panics = outcome(|_| panic!("it broke"));
        assert!(panics.is_err_and(|failure| failure.contains("service_survives: it broke")));
        let leaks = outcome(|stage| {
            stage.witness().record("a log", format!("***@ {}", crate::canary::login()));
            String::new()
        });
        assert!(leaks.is_err_and(|failure| failure.contains("a secret appears in a log")));
        let is_clean = outcome(|stage| {
            stage.witness().record("a log", "redis://***@host".to_owned());
            "no leak".to_owned()
        });
        assert_eq!(is_clean.as_deref(), Ok("no leak"));
        let is_slow = outcome(|stage| {
            stage.check_time(false, || "2 s".to_owned());
            "slow".to_owned()
        });
        assert_eq!(is_slow.as_deref(), Ok("slow; SLOW (not asserted): 2 s"));
    }
}
