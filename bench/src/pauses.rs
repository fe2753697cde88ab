//! The slowest single decisions while a store fills. Growth and cleanup must not delay a decision.

use crate::Outcome;
use crate::candidate::Candidate;
use crate::keys::{Draw, KeyFormat};
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;
use crate::scale::{Scale, short_count};
use crate::timed_run::{Run, time_each_empty};

/// Target for tollgate's slowest decision, as a multiple of the slowest empty operation.
const TARGET: Target = Target::AtMost(1.5);

/// The slowest decisions of one store, in microseconds.
#[derive(Debug, Clone)]
pub struct Row {
    /// The limiter; `None` measures the timing loop itself.
    pub candidate: Option<Candidate>,
    /// The 99.9th percentile.
    pub p999: Rounds,
    /// The maximum.
    pub slowest: Rounds,
}

/// Measures all stores. Each round starts with empty stores.
///
/// # Errors
/// A store cannot be built, or drops keys.
pub fn measure(scale: &Scale) -> Outcome<Vec<Row>> {
    // The empty operation is last, because its time depends on that of tollgate.
    let candidates = Candidate::ALL.map(Some).into_iter().chain([None]);
    let mut rows: Vec<Row> = candidates
        .map(|candidate| Row { candidate, p999: Rounds::default(), slowest: Rounds::default() })
        .collect();
    let draw = Draw::Sequential { from: 0, key_format: KeyFormat::User };
    let run = Run { draw, decisions: scale.filled };
    for _ in 0..scale.refills {
        let mut filling_nanos = 0;
        for row in &mut rows {
            let mut nanos = match row.candidate {
                None => time_empty_for(filling_nanos, &run),
                Some(candidate) => {
                    let mut limiter = candidate.build(scale.filled)?;
                    let nanos = limiter.time_each(&run);
                    limiter.check_no_drops()?;
                    if candidate == Candidate::Tollgate {
                        filling_nanos = sum(&nanos);
                    }
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

/// Times empty operations until they have taken `nanos` together: the longer a run, the more often the machine interrupts
/// it.
fn time_empty_for(nanos: u64, run: &Run<'_>) -> Vec<u32> {
    let mut all = time_each_empty(run);
    while sum(&all) < nanos {
        all.extend(time_each_empty(run));
    }
    all
}

fn sum(nanos: &[u32]) -> u64 {
    nanos.iter().map(|nanos| u64::from(*nanos)).sum()
}

/// Returns the figures as a table.
#[must_use]
pub fn table(rows: &[Row], scale: &Scale) -> Table {
    let new_keys = format!("µs per decision, {} new keys", short_count(scale.filled));
    let mut table =
        Table::new([new_keys.as_str(), "p99.9", "slowest", "slowest × no limiter", "target", ""]);
    let machine = rows.iter().find(|row| row.candidate.is_none()).map(|row| &row.slowest);
    for row in rows {
        let name = row.candidate.map_or("no limiter", Candidate::name).to_owned();
        let ratio = machine.map(|machine| row.slowest.relative_to(machine)).unwrap_or_default();
        let (target, verdict) = match row.candidate {
            Some(Candidate::Tollgate) => {
                (TARGET.to_string(), TARGET.verdict(ratio.median()).to_owned())
            }
            _ => Default::default(),
        };
        let [p999, slowest] = [format!("{:.2}", row.p999), format!("{:.0}", row.slowest)];
        table.push([name, p999, slowest, format!("{ratio:.2}"), target, verdict]);
    }
    table
}
