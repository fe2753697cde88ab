//! Cost of a plan with keys in two cluster slots, compared with a plan in one slot.

use super::figures::Figures;
use super::limits::Limits;
use super::method::Method;
use super::runner::{Keys, Runner, Scenario};
use crate::Outcome;
use crate::markdown::Table;

/// Figures for one number of callers.
#[derive(Debug, Clone)]
pub struct Row {
    callers: u32,
    /// Plans with one subject, hence one slot.
    pub one_slot: Figures,
    /// Plans with two subjects, hence two slots.
    pub two_slots: Figures,
}

/// Measures both kinds of plans, with one caller and with many.
///
/// # Errors
/// A decision is wrong.
pub fn measure(runner: Runner<'_>) -> Outcome<Vec<Row>> {
    const BOTH: [Limits; 2] = [Limits::TwoLimits, Limits::TwoSubjects];
    for limits in BOTH {
        runner.check_exactness(Method::Tollgate, limits)?;
        runner.fill(Method::Tollgate, limits)?;
    }
    let [many, _] = runner.scale.callers;
    let mut rows = Vec::new();
    for callers in [1, many] {
        let scenario =
            |limits| Scenario::always_allowed(Method::Tollgate, callers, Keys::Many, limits);
        let mut results = runner.rounds(&BOTH.map(scenario))?.into_iter();
        let (one_slot, two_slots) =
            (results.next().unwrap_or_default(), results.next().unwrap_or_default());
        rows.push(Row { callers, one_slot, two_slots });
    }
    Ok(rows)
}

/// Returns the figures as a table.
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
    for Row { callers, one_slot, two_slots } in rows {
        for (name, figures) in [("one slot", one_slot), ("two slots", two_slots)] {
            let ratios = [
                figures.per_second.relative_to(&one_slot.per_second),
                figures.p50.relative_to(&one_slot.p50),
                figures.p99.relative_to(&one_slot.p99),
            ];
            let callers =
                if *callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") };
            let cells =
                [figures.per_second.to_string(), figures.p50.to_string(), figures.p99.to_string()];
            let ratios = ratios.map(|ratio| format!("{ratio:.2}"));
            table.push(std::iter::once(format!("{callers}, {name}")).chain(cells).chain(ratios));
        }
    }
    table
}
