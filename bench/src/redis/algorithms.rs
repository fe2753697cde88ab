//! Cost of decisions per algorithm.

use super::figures::Figures;
use super::limits::Limits;
use super::method::Method;
use super::runner::{Keys, Runner, Scenario};
use crate::Outcome;
use crate::markdown::Table;

/// Figures of tollgate for one kind of limits.
#[derive(Debug, Clone)]
pub struct Row {
    limits: Limits,
    /// The figures.
    pub figures: Figures,
}

/// Measures all algorithms, the token bucket first.
///
/// # Errors
/// A decision is wrong.
pub fn measure(runner: Runner<'_>) -> Outcome<Vec<Row>> {
    let [callers, _] = runner.scale.callers;
    for limits in Limits::OF_ONE_KEY {
        runner.check_exactness(Method::Tollgate, limits)?;
        runner.fill(Method::Tollgate, limits)?;
    }
    let scenario = |limits| Scenario::always_allowed(Method::Tollgate, callers, Keys::Many, limits);
    let figures = runner.rounds(&Limits::OF_ONE_KEY.map(scenario))?;
    Ok(Limits::OF_ONE_KEY
        .into_iter()
        .zip(figures)
        .map(|(limits, figures)| Row { limits, figures })
        .collect())
}

/// Returns the figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "tollgate",
        "decisions/s",
        "p99 µs",
        "Redis CPU µs per decision",
        "Redis CPU × token bucket",
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
