//! Decisions close to the cap, where a store that makes room by looking through itself falls off a
//! cliff.

use tollgate::LocalLimiter;

use crate::Outcome;
use crate::keys::{Draw, Shape};
use crate::limiter;
use crate::markdown::Table;
use crate::rounds::Rounds;
use crate::scale::Scale;
use crate::timed_run::{Contestant, Run};

/// In percent of the cap. Beyond the last one no key finds a place.
const SHARES: [u32; 5] = [75, 90, 99, 100, 101];

/// The last so many percent of a share are the new keys that are timed.
const TIMED: u32 = 1;

/// A decision slower than this is timed a few times only: a full run would take minutes.
const SLOW_NANOS: f64 = 5_000.0;
const FEW: u32 = 500;

/// One store's figures at one share.
#[derive(Debug, Clone, Default)]
pub struct Costs {
    /// For a key it holds.
    pub known: Rounds,
    /// For a key it has never seen.
    pub new: Rounds,
}

/// Both stores' figures at one share.
#[derive(Debug, Clone)]
pub struct Row {
    /// In percent of the cap.
    pub share: u32,
    /// Of tollgate.
    pub tollgate: Costs,
    /// Of throttlecrab's default store.
    pub throttlecrab: Costs,
}

/// Takes the figures of all shares.
///
/// # Errors
/// A decision was refused.
pub fn measure(scale: &Scale, writing: f64) -> Outcome<Vec<Row>> {
    let mut rows = SHARES.map(|share| Row {
        share,
        tollgate: Costs::default(),
        throttlecrab: Costs::default(),
    });
    for _ in 0..scale.refills {
        let cap = usize::try_from(scale.cap)?;
        let mut ours = LocalLimiter::builder().limit(limiter::limit()?).max_keys(cap).build()?;
        let mut theirs = limiter::adaptive_of_slots(scale.cap);
        let mut filled = 0;
        for row in &mut rows {
            let step = Step { from: filled, to: part(scale.cap, row.share), scale, writing };
            step.take(&mut ours, &mut row.tollgate)?;
            step.take(&mut theirs, &mut row.throttlecrab)?;
            filled = step.to;
        }
    }
    Ok(rows.into())
}

fn part(cap: u32, percent: u32) -> u32 {
    cap / 100 * percent + cap % 100 * percent / 100
}

/// Filling a store from one share to the next.
struct Step<'s> {
    from: u32,
    to: u32,
    scale: &'s Scale,
    writing: f64,
}

impl Step<'_> {
    fn take(&self, store: &mut dyn Contestant, costs: &mut Costs) -> Outcome<()> {
        let timed_from = self.to - part(self.scale.cap, TIMED);
        let in_turn = |from, decisions| {
            let draw = Draw::InTurn { from, shape: Shape::User };
            Run { draw, decisions }
        };
        if timed_from > self.from {
            store.alone(&in_turn(self.from, timed_from - self.from)).nanos()?;
        }
        let new = store.alone(&in_turn(timed_from, self.to - timed_from)).nanos()?;
        costs.new.push(new - self.writing);
        costs.known.push(self.known(store)? - self.writing);
        store.holds_all()
    }

    fn known(&self, store: &mut dyn Contestant) -> Outcome<f64> {
        let draw = Draw::Written { below: self.to.min(self.scale.cap), shape: Shape::User };
        let few = store.alone(&Run { draw, decisions: FEW }).nanos()?;
        if few > SLOW_NANOS {
            return Ok(few);
        }
        store.alone(&Run { draw, decisions: self.scale.decisions / 4 }).nanos()
    }
}

/// The figures as a table.
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
        table.push(std::iter::once(label(row.share)).chain(cells.map(Rounds::to_string)));
    }
    table
}

fn label(share: u32) -> String {
    if share > 100 { "above the cap".to_owned() } else { format!("{share} % of the cap") }
}
