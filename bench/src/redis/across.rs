//! What a plan costs whose keys are in two slots, beside one whose keys are in one.

use super::contest::{Contest, Entry, Keys};
use super::figures::Figures;
use super::limits::Limits;
use super::way::Way;
use crate::Outcome;
use crate::markdown::Table;

/// The figures of so many callers.
#[derive(Debug, Clone)]
pub struct Row {
    callers: u32,
    /// Of plans of one subject.
    pub within: Figures,
    /// Of plans of two.
    pub across: Figures,
}

/// Takes the figures of both side by side, with one caller and with many.
///
/// # Errors
/// An answer that is not the right one.
pub fn measure(contest: Contest<'_>) -> Outcome<Vec<Row>> {
    const BOTH: [Limits; 2] = [Limits::TwoLimits, Limits::TwoSubjects];
    for limits in BOTH {
        contest.prove(Way::Tollgate, limits)?;
        contest.fill(Way::Tollgate, limits)?;
    }
    let [many, _] = contest.scale.callers;
    let mut rows = Vec::new();
    for callers in [1, many] {
        let entry = |limits| Entry::plenty(Way::Tollgate, callers, Keys::Many, limits);
        let mut taken = contest.rounds(&BOTH.map(entry))?.into_iter();
        let (within, across) = (taken.next().unwrap_or_default(), taken.next().unwrap_or_default());
        rows.push(Row { callers, within, across });
    }
    Ok(rows)
}

/// The figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "",
        "decisions/s",
        "p50 µs",
        "p99 µs",
        "decisions/s × one slot",
        "p50 × one slot",
        "p99 × one slot",
    ]);
    for Row { callers, within, across } in rows {
        for (name, figures) in [("one slot", within), ("two slots", across)] {
            let ratios = [
                figures.per_second.relative_to(&within.per_second),
                figures.p50.relative_to(&within.p50),
                figures.p99.relative_to(&within.p99),
            ];
            let callers =
                if *callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") };
            let own =
                [figures.per_second.to_string(), figures.p50.to_string(), figures.p99.to_string()];
            let ratios = ratios.map(|ratio| format!("{ratio:.2}"));
            table.push(std::iter::once(format!("{callers}, {name}")).chain(own).chain(ratios));
        }
    }
    table
}
