//! Cost of a cluster, compared with one server.

use super::deployment::Deployment;
use super::figures::Figures;
use super::limits::Limits;
use super::method::Method;
use super::runner::{Keys, Runner, Scenario};
use super::scale::Scale;
use crate::Outcome;
use crate::markdown::Table;

/// A deployment with its label.
pub type LabeledDeployment<'s> = (&'static str, &'s Deployment);

/// Figures of one deployment with one number of callers.
#[derive(Debug, Clone)]
pub struct Row {
    callers: u32,
    name: &'static str,
    /// The figures.
    pub figures: Figures,
    /// The figures of the first deployment.
    first: Figures,
}

/// Measures all deployments, with both numbers of callers.
///
/// # Errors
/// A decision is wrong.
pub fn measure(deployments: &[LabeledDeployment<'_>], scale: &Scale) -> Outcome<Vec<Row>> {
    for (_, deployment) in deployments {
        let runner = Runner { deployment, scale };
        runner.check_exactness(Method::Tollgate, Limits::TokenBucket)?;
        runner.fill(Method::Tollgate, Limits::TokenBucket)?;
    }
    let mut rows = Vec::new();
    for callers in scale.callers {
        let scenario =
            Scenario::always_allowed(Method::Tollgate, callers, Keys::Many, Limits::TokenBucket);
        let mut results = vec![Figures::default(); deployments.len()];
        for _ in 0..scale.rounds {
            for ((_, deployment), figures) in deployments.iter().zip(&mut results) {
                figures.push(&Runner { deployment, scale }.run_once(scenario)?);
            }
        }
        let first = results.first().cloned().unwrap_or_default();
        let row = |((name, _), figures): (&LabeledDeployment<'_>, Figures)| {
            let first = first.clone();
            Row { callers, name, figures, first }
        };
        rows.extend(deployments.iter().zip(results).map(row));
    }
    Ok(rows)
}

/// Returns the figures as a table.
#[must_use]
pub fn figures(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "",
        "decisions/s",
        "p50 µs",
        "p99 µs",
        "Redis CPU µs per decision",
        "client CPU µs per decision",
        "script calls per decision",
        "commands per decision",
    ]);
    for Row { callers, name, figures, .. } in rows {
        table.push([
            format!("{callers} callers, {name}"),
            figures.per_second.to_string(),
            figures.p50.to_string(),
            figures.p99.to_string(),
            format!("{:.2}", figures.redis_micros),
            format!("{:.2}", figures.client_micros),
            format!("{:.3}", figures.script_calls),
            format!("{:.2}", figures.commands),
        ]);
    }
    table
}

/// Returns the ratios to the first deployment as a table.
#[must_use]
pub fn ratios(rows: &[Row]) -> Table {
    let first = rows.first().map(|row| format!("× {}", row.name)).unwrap_or_default();
    let mut table = Table::new([
        &first,
        "decisions/s",
        "p50",
        "p99",
        "Redis CPU",
        "client CPU",
        "script calls",
        "commands",
    ]);
    for Row { callers, name, figures, first } in rows {
        // Skip the ratio of the first deployment to itself.
        if rows.first().is_some_and(|row| row.name == *name) {
            continue;
        }
        let ratios = [
            figures.per_second.relative_to(&first.per_second),
            figures.p50.relative_to(&first.p50),
            figures.p99.relative_to(&first.p99),
            figures.redis_micros.relative_to(&first.redis_micros),
            figures.client_micros.relative_to(&first.client_micros),
            figures.script_calls.relative_to(&first.script_calls),
            figures.commands.relative_to(&first.commands),
        ];
        let cells = ratios.into_iter().map(|ratio| format!("{ratio:.2}"));
        table.push(std::iter::once(format!("{callers} callers, {name}")).chain(cells));
    }
    table
}
