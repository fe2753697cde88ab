//! Cost of refusals of a key without remaining quota.

use super::figures::Figures;
use super::limits::Limits;
use super::method::Method;
use super::runner::{Keys, Runner, Scenario};
use crate::Outcome;
use crate::markdown::{Table, Target};

/// Target for the CPU time of Redis per decision, in microseconds: about what an idle Redis uses.
const IDLE_CPU: Target = Target::AtMost(0.01);

/// Figures of one method.
#[derive(Debug, Clone)]
pub struct Row {
    method: Method,
    /// The figures.
    pub figures: Figures,
}

/// Measures all methods with one key and a limit of one request.
///
/// # Errors
/// A decision is wrong.
pub fn measure(runner: Runner<'_>) -> Outcome<Vec<Row>> {
    let [callers, _] = runner.scale.callers;
    let methods = [Method::TollgateCached, Method::Tollgate, Method::Multiplexed];
    let scenario = |method| Scenario {
        method,
        callers,
        keys: Keys::Hot,
        limits: Limits::TokenBucket,
        burst: 1,
    };
    let figures = runner.rounds(&methods.map(scenario))?;
    Ok(methods.into_iter().zip(figures).map(|(method, figures)| Row { method, figures }).collect())
}

/// Returns the figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "",
        "decisions/s",
        "p50 µs",
        "p99 µs",
        "commands per decision",
        "Redis CPU µs per decision",
        "target",
        "",
    ]);
    for Row { method, figures } in rows {
        let Figures { per_second, p50, p99, redis_micros, commands, .. } = figures;
        let verdict =
            (*method == Method::TollgateCached).then(|| IDLE_CPU.verdict(redis_micros.median()));
        table.push([
            method.label().to_owned(),
            per_second.to_string(),
            format!("{p50:.1}"),
            format!("{p99:.1}"),
            format!("{commands:.4}"),
            format!("{redis_micros:.4}"),
            verdict.map(|_| IDLE_CPU.to_string()).unwrap_or_default(),
            verdict.unwrap_or_default().to_owned(),
        ]);
    }
    table
}
