//! Cost of a check by number of keys.

use super::policy::Policy;
use super::runner::Runner;
use crate::Outcome;
use crate::load::figures::Figures;
use crate::markdown::Table;
use crate::scale::short_count;

/// Figures of both servers for one number of keys.
#[derive(Debug, Clone)]
pub struct Row {
    /// The number of keys.
    pub keys: u32,
    /// Figures of tollgate.
    pub tollgate: Figures,
    /// Figures of throttlecrab-server.
    pub throttlecrab: Figures,
}

/// Measures every number of keys, with servers that hold all of them.
///
/// # Errors
/// A server does not start, or does not allow every request.
pub fn measure(runner: Runner<'_>) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for &keys in runner.scale.key_counts {
        eprintln!("  {} keys", short_count(keys));
        let tollgate = runner.programs.tollgate(Policy::Default, keys)?;
        runner.fill(&tollgate)?;
        let throttlecrab = runner.programs.throttlecrab(keys)?;
        runner.fill(&throttlecrab)?;
        let [tollgate, throttlecrab] = runner.rounds([&tollgate, &throttlecrab])?;
        rows.push(Row { keys, tollgate, throttlecrab });
    }
    Ok(rows)
}

/// Returns the figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "keys",
        "tollgate, requests/s",
        "throttlecrab-server, requests/s",
        "tollgate, server CPU µs",
        "throttlecrab-server, server CPU µs",
    ]);
    for Row { keys, tollgate, throttlecrab } in rows {
        table.push([
            short_count(*keys),
            tollgate.per_second.to_string(),
            throttlecrab.per_second.to_string(),
            format!("{:.2}", tollgate.server_micros),
            format!("{:.2}", throttlecrab.server_micros),
        ]);
    }
    table
}
