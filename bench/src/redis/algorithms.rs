//! What the other algorithms cost.

use super::contest::{Contest, Entry, Keys};
use super::figures::Figures;
use super::limits::Limits;
use super::way::Way;
use crate::Outcome;
use crate::markdown::Table;

/// tollgate's figures under some limits.
#[derive(Debug, Clone)]
pub struct Row {
    limits: Limits,
    /// What came out.
    pub figures: Figures,
}

/// Takes the figures of all side by side, the token bucket's first.
///
/// # Errors
/// An answer that is not the right one.
pub fn measure(contest: Contest<'_>) -> Outcome<Vec<Row>> {
    let [callers, _] = contest.scale.callers;
    for limits in Limits::OF_ONE_KEY {
        contest.prove(Way::Tollgate, limits)?;
        contest.fill(Way::Tollgate, limits)?;
    }
    let entry = |limits| Entry::plenty(Way::Tollgate, callers, Keys::Many, limits);
    let figures = contest.rounds(&Limits::OF_ONE_KEY.map(entry))?;
    Ok(Limits::OF_ONE_KEY
        .into_iter()
        .zip(figures)
        .map(|(limits, figures)| Row { limits, figures })
        .collect())
}

/// The figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "tollgate",
        "decisions/s",
        "p99 µs",
        "Redis CPU µs a decision",
        "Redis CPU × the first",
    ]);
    let first = rows.first();
    for Row { limits, figures } in rows {
        let ratio = first.map(|first| {
            let ratio = figures.redis_micros.relative_to(&first.figures.redis_micros);
            format!("{ratio:.2}")
        });
        table.push([
            limits.name().replace('_', " "),
            figures.per_second.to_string(),
            figures.p99.to_string(),
            format!("{:.2}", figures.redis_micros),
            ratio.unwrap_or_default(),
        ]);
    }
    table
}
