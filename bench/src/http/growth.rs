//! What more keys cost.

use super::contest::Contest;
use super::figures::Figures;
use super::policy::Policy;
use crate::Outcome;
use crate::markdown::Table;
use crate::scale::spoken;

/// Both servers' figures with so many keys.
#[derive(Debug, Clone)]
pub struct Row {
    /// How many keys they hold.
    pub keys: u32,
    /// Of tollgate.
    pub tollgate: Figures,
    /// Of throttlecrab's server.
    pub throttlecrab: Figures,
}

/// Takes the figures of every number of keys, of servers that hold all of them.
///
/// # Errors
/// A server that does not start or does not let every request pass.
pub fn measure(contest: Contest<'_>) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for &keys in contest.scale.growth {
        eprintln!("  {} keys", spoken(keys));
        let tollgate = contest.stage.tollgate(Policy::Default, keys)?;
        contest.fill(&tollgate)?;
        let throttlecrab = contest.stage.throttlecrab(keys)?;
        contest.fill(&throttlecrab)?;
        let [tollgate, throttlecrab] = contest.rounds([&tollgate, &throttlecrab])?;
        rows.push(Row { keys, tollgate, throttlecrab });
    }
    Ok(rows)
}

/// The figures as a table.
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
            spoken(*keys),
            tollgate.per_second.to_string(),
            throttlecrab.per_second.to_string(),
            format!("{:.2}", tollgate.server_micros),
            format!("{:.2}", throttlecrab.server_micros),
        ]);
    }
    table
}
