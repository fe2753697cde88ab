//! The slowest single decisions while a store fills: growing and cleaning must not make one wait.

use crate::Outcome;
use crate::entrant::Entrant;
use crate::keys::{Draw, Shape};
use crate::markdown::Table;
use crate::rounds::Rounds;
use crate::scale::{Scale, spoken};
use crate::timed_run::{Run, each_nothing};

/// One store's slowest decisions, in microseconds.
#[derive(Debug, Clone)]
pub struct Row {
    /// Whose; of the measurement itself when nobody's.
    pub entrant: Option<Entrant>,
    /// What one in a thousand exceeds.
    pub p999: Rounds,
    /// The slowest.
    pub slowest: Rounds,
}

/// Fills every store anew in every round.
///
/// # Errors
/// A store that cannot be built or that drops keys.
pub fn measure(scale: &Scale) -> Outcome<Vec<Row>> {
    let everyone = std::iter::once(None).chain(Entrant::ALL.map(Some));
    let mut rows: Vec<Row> = everyone
        .map(|entrant| Row { entrant, p999: Rounds::default(), slowest: Rounds::default() })
        .collect();
    let draw = Draw::InTurn { from: 0, shape: Shape::User };
    let run = Run { draw, decisions: scale.filled };
    for _ in 0..scale.refills {
        for row in &mut rows {
            let mut nanos = match row.entrant {
                None => each_nothing(&run),
                Some(entrant) => {
                    let mut contestant = entrant.build(scale.filled)?;
                    let nanos = contestant.each(&run);
                    contestant.holds_all()?;
                    nanos
                }
            };
            nanos.sort_unstable();
            let from_the_top = |count: usize| {
                let nanos = nanos.iter().rev().nth(count).copied().unwrap_or_default();
                f64::from(nanos) / 1000.0
            };
            row.p999.push(from_the_top(nanos.len() / 1000));
            row.slowest.push(from_the_top(0));
        }
    }
    Ok(rows)
}

/// The figures as a table.
#[must_use]
pub fn table(rows: &[Row], scale: &Scale) -> Table {
    let new_keys = format!("µs per decision, {} new keys", spoken(scale.filled));
    let mut table = Table::new([new_keys.as_str(), "99.9 % within", "slowest"]);
    for row in rows {
        let name = row.entrant.map_or("no limiter at all", Entrant::name).to_owned();
        table.push([name, format!("{:.2}", row.p999), format!("{:.0}", row.slowest)]);
    }
    table
}
