//! Keys over the slots of a cluster, beside one server that has them all.

use super::contest::{Contest, Entry, Keys};
use super::figures::Figures;
use super::limits::Limits;
use super::scale::Scale;
use super::stage::Stage;
use super::way::Way;
use crate::Outcome;
use crate::markdown::Table;

/// A deployment and what it is called.
pub type Named<'s> = (&'static str, &'s Stage);

/// The figures of one deployment with so many callers.
#[derive(Debug, Clone)]
pub struct Row {
    callers: u32,
    name: &'static str,
    /// What came out.
    pub figures: Figures,
    /// What the first deployment had.
    first: Figures,
}

/// Takes the figures of all deployments side by side, with both numbers of callers.
///
/// # Errors
/// An answer that is not the right one.
pub fn measure(stages: &[Named<'_>], scale: &Scale) -> Outcome<Vec<Row>> {
    for (_, stage) in stages {
        let contest = Contest { stage, scale };
        contest.prove(Way::Tollgate, Limits::TokenBucket)?;
        contest.fill(Way::Tollgate, Limits::TokenBucket)?;
    }
    let mut rows = Vec::new();
    for callers in scale.callers {
        let entry = Entry::plenty(Way::Tollgate, callers, Keys::Many, Limits::TokenBucket);
        let mut taken = vec![Figures::default(); stages.len()];
        for _ in 0..scale.rounds {
            for ((_, stage), figures) in stages.iter().zip(&mut taken) {
                figures.push(&Contest { stage, scale }.turn(entry)?);
            }
        }
        let first = taken.first().cloned().unwrap_or_default();
        let row = |((name, _), figures): (&Named<'_>, Figures)| {
            let first = first.clone();
            Row { callers, name, figures, first }
        };
        rows.extend(stages.iter().zip(taken).map(row));
    }
    Ok(rows)
}

/// The figures as a table.
#[must_use]
pub fn figures(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "",
        "decisions/s",
        "p50 µs",
        "p99 µs",
        "Redis CPU µs a decision",
        "client CPU µs a decision",
        "commands a decision",
    ]);
    for Row { callers, name, figures, .. } in rows {
        table.push([
            format!("{callers} callers, {name}"),
            figures.per_second.to_string(),
            figures.p50.to_string(),
            figures.p99.to_string(),
            format!("{:.2}", figures.redis_micros),
            format!("{:.2}", figures.client_micros),
            format!("{:.2}", figures.commands),
        ]);
    }
    table
}

/// The ratios to the first deployment as a table.
#[must_use]
pub fn ratios(rows: &[Row]) -> Table {
    let first = rows.first().map(|row| format!("× {}", row.name)).unwrap_or_default();
    let mut table = Table::new([&first, "decisions/s", "p50", "p99", "Redis CPU", "client CPU"]);
    for Row { callers, name, figures, first } in rows {
        // The first beside itself tells nothing.
        if rows.first().is_some_and(|row| row.name == *name) {
            continue;
        }
        let ratios = [
            figures.per_second.relative_to(&first.per_second),
            figures.p50.relative_to(&first.p50),
            figures.p99.relative_to(&first.p99),
            figures.redis_micros.relative_to(&first.redis_micros),
            figures.client_micros.relative_to(&first.client_micros),
        ];
        let cells = ratios.into_iter().map(|ratio| format!("{ratio:.2}"));
        table.push(std::iter::once(format!("{callers} callers, {name}")).chain(cells));
    }
    table
}
