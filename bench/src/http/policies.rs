//! What rules and limits cost.

use super::contest::Contest;
use super::figures::Figures;
use super::policy::Policy;
use crate::Outcome;
use crate::markdown::Table;

/// tollgate's figures under one policy.
#[derive(Debug, Clone)]
pub struct Row {
    /// Which.
    pub policy: Policy,
    /// What came out.
    pub figures: Figures,
}

/// Takes the figures of all policies side by side. The first row's is the one that others are
/// compared with.
///
/// # Errors
/// A server that does not start or does not let every request pass.
pub fn measure(contest: Contest<'_>) -> Outcome<[Row; 4]> {
    let [few, many] = contest.scale.rules;
    let policies = [Policy::Rules(few), Policy::Rules(many), Policy::TwoLimits, Policy::Default];
    let [few, many, two, default] = policies.map(|policy| {
        let contender = contest.stage.tollgate(policy, contest.scale.keys)?;
        contest.fill(&contender)?;
        Outcome::Ok(contender)
    });
    let figures = contest.rounds([&few?, &many?, &two?, &default?])?;
    let mut rows = policies.map(|policy| Row { policy, figures: Figures::default() });
    for (row, figures) in rows.iter_mut().zip(figures) {
        row.figures = figures;
    }
    Ok(rows)
}

/// The figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["tollgate with", "requests/s", "server CPU µs", "CPU × the first"]);
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
