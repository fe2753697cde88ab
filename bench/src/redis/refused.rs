//! What it costs to refuse one who keeps asking.

use super::contest::{Contest, Entry, Keys};
use super::figures::Figures;
use super::limits::Limits;
use super::way::Way;
use crate::Outcome;
use crate::markdown::{Table, Target};

/// Microseconds of Redis's processor time: what it uses by itself is as much.
const NOTHING: Target = Target::AtMost(0.01);

/// The figures of one way.
#[derive(Debug, Clone)]
pub struct Row {
    way: Way,
    /// What came out.
    pub figures: Figures,
}

/// Takes them side by side: one key, which may ask once.
///
/// # Errors
/// An answer that is not the right one.
pub fn measure(contest: Contest<'_>) -> Outcome<Vec<Row>> {
    let [callers, _] = contest.scale.callers;
    let ways = [Way::Remembering, Way::Tollgate, Way::Multiplexed];
    let entry =
        |way| Entry { way, callers, keys: Keys::Hot, limits: Limits::TokenBucket, burst: 1 };
    let figures = contest.rounds(&ways.map(entry))?;
    Ok(ways.into_iter().zip(figures).map(|(way, figures)| Row { way, figures }).collect())
}

/// The figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "",
        "decisions/s",
        "p50 µs",
        "p99 µs",
        "commands a decision",
        "Redis CPU µs a decision",
        "target",
        "",
    ]);
    for Row { way, figures } in rows {
        let Figures { per_second, p50, p99, redis_micros, commands, .. } = figures;
        let held = (*way == Way::Remembering).then(|| NOTHING.verdict(redis_micros.median()));
        table.push([
            way.label().to_owned(),
            per_second.to_string(),
            format!("{p50:.1}"),
            format!("{p99:.1}"),
            format!("{commands:.4}"),
            format!("{redis_micros:.4}"),
            held.map(|_| NOTHING.to_string()).unwrap_or_default(),
            held.unwrap_or_default().to_owned(),
        ]);
    }
    table
}
