//! Cost of decisions near the maximum number of keys. Stores that scan all keys to free space slow
//! down sharply there.

use tollgate::LocalLimiter;

use crate::Outcome;
use crate::keys::{Draw, KeyFormat};
use crate::limiter;
use crate::markdown::Table;
use crate::rounds::Rounds;
use crate::scale::Scale;
use crate::timed_run::{Run, TimedLimiter};

/// Fill levels in percent of the cap. At the last one the store is over its cap.
const FILL_LEVELS: [u32; 5] = [75, 90, 99, 100, 101];

/// The new keys that are timed: the last keys before each fill level, in percent of the cap.
const TIMED_PERCENT: u32 = 1;

/// Above this time per decision, in nanoseconds, only [`FEW_DECISIONS`] decisions are timed: a full run would
/// take minutes.
const SLOW_NANOS: f64 = 5_000.0;
const FEW_DECISIONS: u32 = 500;

/// Nanoseconds per decision of one store at one fill level.
#[derive(Debug, Clone, Default)]
pub struct Costs {
    /// For keys that the store holds.
    pub known: Rounds,
    /// For new keys.
    pub new: Rounds,
}

/// Figures of both stores at one fill level.
#[derive(Debug, Clone)]
pub struct Row {
    /// Fill level in percent of the cap.
    pub fill_level: u32,
    /// Figures of tollgate.
    pub tollgate: Costs,
    /// Figures of throttlecrab's default store.
    pub throttlecrab: Costs,
}

/// Measures all fill levels. `key_write_nanos` is subtracted from each figure.
///
/// # Errors
/// A decision was refused or a key dropped.
pub fn measure(scale: &Scale, key_write_nanos: f64) -> Outcome<Vec<Row>> {
    let mut rows = FILL_LEVELS.map(|fill_level| Row {
        fill_level,
        tollgate: Costs::default(),
        throttlecrab: Costs::default(),
    });
    for _ in 0..scale.refills {
        let cap = usize::try_from(scale.cap)?;
        let mut tollgate =
            LocalLimiter::builder().limit(limiter::limit()?).max_keys(cap).build()?;
        let mut throttlecrab = limiter::adaptive_with_slots(scale.cap);
        let mut filled = 0;
        for row in &mut rows {
            let step = Step {
                from: filled,
                to: percent_of(scale.cap, row.fill_level),
                scale,
                key_write_nanos,
            };
            step.measure(&mut tollgate, &mut row.tollgate)?;
            step.measure(&mut throttlecrab, &mut row.throttlecrab)?;
            filled = step.to;
        }
    }
    Ok(rows.into())
}

fn percent_of(cap: u32, percent: u32) -> u32 {
    cap / 100 * percent + cap % 100 * percent / 100
}

/// Fills a store from one fill level to the next.
struct Step<'s> {
    from: u32,
    to: u32,
    scale: &'s Scale,
    key_write_nanos: f64,
}

impl Step<'_> {
    fn measure(&self, store: &mut dyn TimedLimiter, costs: &mut Costs) -> Outcome<()> {
        let timed_from = self.to - percent_of(self.scale.cap, TIMED_PERCENT);
        let sequential = |from, decisions| {
            let draw = Draw::Sequential { from, key_format: KeyFormat::User };
            Run { draw, decisions }
        };
        if timed_from > self.from {
            store.run_exclusive(&sequential(self.from, timed_from - self.from)).nanos()?;
        }
        let new = store.run_exclusive(&sequential(timed_from, self.to - timed_from)).nanos()?;
        costs.new.push(new - self.key_write_nanos);
        costs.known.push(self.known(store)? - self.key_write_nanos);
        store.check_no_drops()
    }

    fn known(&self, store: &mut dyn TimedLimiter) -> Outcome<f64> {
        let draw =
            Draw::Written { below: self.to.min(self.scale.cap), key_format: KeyFormat::User };
        let nanos = store.run_exclusive(&Run { draw, decisions: FEW_DECISIONS }).nanos()?;
        if nanos > SLOW_NANOS {
            return Ok(nanos);
        }
        store.run_exclusive(&Run { draw, decisions: self.scale.decisions / 4 }).nanos()
    }
}

/// Returns the figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "ns per decision",
        "tollgate, known key",
        "tollgate, new key",
        "throttlecrab adaptive, known key",
        "throttlecrab adaptive, new key",
    ]);
    for row in rows {
        let costs = [&row.tollgate, &row.throttlecrab];
        let cells = costs.into_iter().flat_map(|costs| [&costs.known, &costs.new]);
        table.push(std::iter::once(label(row.fill_level)).chain(cells.map(Rounds::to_string)));
    }
    table
}

fn label(fill_level: u32) -> String {
    if fill_level > 100 { "above the cap".to_owned() } else { format!("{fill_level} % of the cap") }
}
