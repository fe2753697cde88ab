//! Plays rows one after the other.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::row::{Pace, Row};
use crate::stage::{Scale, Stage};
use crate::table::Played;

/// Those of all rows that were asked for, by number, or all; of a quick run the quick ones.
pub fn chosen(all: &[Row], numbers: &[u8], scale: Scale) -> Vec<Row> {
    let is_wanted = |row: &&Row| match numbers {
        [] => scale == Scale::Full || row.pace == Pace::Quick,
        some => some.contains(&row.number),
    };
    all.iter().filter(is_wanted).copied().collect()
}

/// Plays one, and listens for the canary afterwards.
pub fn play(row: &Row, tollgate: &Path, scale: Scale) -> Played {
    let (began, stage) = (Instant::now(), Stage::new(tollgate.to_owned(), scale));
    let complaints = Complaints::listen();
    let played = panic::catch_unwind(AssertUnwindSafe(|| (row.play)(&stage)));
    let told = complaints.stop();
    let outcome = match (played, stage.witness().complaint()) {
        (Err(_), _) => Err(format!("{}: {told}", row.claim)),
        (Ok(_), Some(complaint)) => Err(complaint),
        (Ok(seen), None) => Ok(seen),
    };
    Played { outcome, took: began.elapsed() }
}

/// How many complaints are told.
const FEW: usize = 3;

/// What threads panic with while a row is played, be they helpers whose words would be lost.
struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    fn listen() -> Self {
        let all = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&all);
        panic::set_hook(Box::new(move |info| {
            heard.lock().unwrap_or_else(PoisonError::into_inner).push(told(info));
        }));
        Self(all)
    }

    /// The first few: the first is the cause of the others.
    fn stop(self) -> String {
        drop(panic::take_hook());
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().take(FEW).cloned().collect::<Vec<_>>().join("; then ")
    }
}

fn told(info: &PanicHookInfo<'_>) -> String {
    let words = info.payload_as_str().unwrap_or("it panicked");
    let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
    format!("{words} ({})", place.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Row, Scale, chosen, play};
    use crate::row::Pace;

    fn row(number: u8, pace: Pace, play: fn(&crate::stage::Stage) -> String) -> Row {
        let (fault, injected, claim) = ("a fault", "somehow", "it_is_borne");
        Row { number, fault, injected, claim, pace, play }
    }

    #[test]
    fn rows_are_chosen_by_number_or_by_how_long_they_take() {
        let all = [row(1, Pace::Quick, |_| String::new()), row(2, Pace::Slow, |_| String::new())];
        let numbers = |numbers: &[u8], scale| {
            chosen(&all, numbers, scale).iter().map(|row| row.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[], Scale::Full), [1, 2]);
        assert_eq!(numbers(&[], Scale::Quick), [1]);
        assert_eq!(numbers(&[2], Scale::Quick), [2]);
    }

    #[test]
    fn a_row_fails_by_its_panic_and_by_the_canary() {
        let outcome = |play_row| {
            play(&row(1, Pace::Quick, play_row), Path::new("none"), Scale::Quick).outcome
        };
        let panics = outcome(|_| panic!("it broke"));
        assert!(panics.is_err_and(|why| why.contains("it_is_borne: it broke")));
        let tells = outcome(|stage| {
            stage.witness().hear("a log", format!("***@ {}", crate::canary::login()));
            String::new()
        });
        assert!(tells.is_err_and(|why| why.contains("a secret is shown by a log")));
        let is_silent = outcome(|stage| {
            stage.witness().hear("a log", "redis://***@host".to_owned());
            "all well".to_owned()
        });
        assert_eq!(is_silent.as_deref(), Ok("all well"));
    }
}
