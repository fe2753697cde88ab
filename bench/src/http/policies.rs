//! Cost of a check by policy.

use super::policy::Policy;
use super::runner::Runner;
use crate::Outcome;
use crate::load::figures::Figures;
use crate::markdown::Table;

/// Figures of tollgate with one policy.
#[derive(Debug, Clone)]
pub struct Row {
    /// The policy.
    pub policy: Policy,
    /// The figures.
    pub figures: Figures,
}

/// Measures all policies. The others are compared with the first row.
///
/// # Errors
/// A server does not start, or does not allow every request.
pub fn measure(runner: Runner<'_>) -> Outcome<[Row; 4]> {
    let [few, many] = runner.scale.rules;
    let policies = [Policy::Rules(few), Policy::Rules(many), Policy::TwoLimits, Policy::Default];
    let [few, many, two, default] = policies.map(|policy| {
        let candidate = runner.programs.tollgate(policy, runner.scale.keys)?;
        runner.fill(&candidate)?;
        Outcome::Ok(candidate)
    });
    let figures = runner.rounds([&few?, &many?, &two?, &default?])?;
    let mut rows = policies.map(|policy| Row { policy, figures: Figures::default() });
    for (row, figures) in rows.iter_mut().zip(figures) {
        row.figures = figures;
    }
    Ok(rows)
}

/// Returns the figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["tollgate policy", "requests/s", "server CPU µs", "CPU × 1 rule"]);
    let first = rows.first();
    for Row { policy, figures } in rows {
        let ratio = first.map(|first| {
            let ratio = figures.server_micros.relative_to(&first.figures.server_micros);
            format!("{ratio:.2}")
        });
        table.push([
            policy.label(),
            figures.per_second.to_string(),
            format!("{:.2}", figures.server_micros),
            ratio.unwrap_or_default(),
        ]);
    }
    table
}
