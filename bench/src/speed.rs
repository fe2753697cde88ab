//! Nanoseconds per decision, side by side.

use crate::Outcome;
use crate::entrant::Entrant;
use crate::keys::{self, Draw, Shape};
use crate::markdown::{Table, Target};
use crate::pass::{Contestant, Pass, Run, draw_only};
use crate::rounds::Rounds;
use crate::scale::{Scale, spoken};

const THREADS: [u32; 2] = [1, 2];

/// Where a decision finds its key's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// In one place, always the same.
    Hot,
    /// Just written, hence in cache.
    InCache,
    /// Somewhere in a large array.
    FromArray,
}

/// What is asked of everyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    keys: u32,
    reading: Reading,
    threads: u32,
}

impl Workload {
    fn target(self) -> Target {
        Target(if self.reading == Reading::Hot { 1.0 } else { 0.5 })
    }

    /// Its name in the tables.
    #[must_use]
    pub fn label(&self) -> String {
        let keys = match self.reading {
            Reading::Hot => "1 hot key".to_owned(),
            Reading::InCache => format!("{} keys, in cache", spoken(self.keys)),
            Reading::FromArray => format!("{} keys, from an array", spoken(self.keys)),
        };
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        format!("{keys}, {} {threads}", self.threads)
    }
}

/// One workload's figures, one per entrant.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was asked.
    pub workload: Workload,
    /// What it cost each.
    pub nanos: [(Entrant, Rounds); Entrant::ALL.len()],
}

impl Row {
    fn ratio(&self, entrant: Entrant) -> Rounds {
        let of = |wanted| self.nanos.iter().find(|(one, _)| *one == wanted);
        match (of(entrant), of(Entrant::Governor)) {
            (Some((_, figures)), Some((_, theirs))) => figures.relative_to(theirs),
            _ => Rounds::default(),
        }
    }
}

/// The whole comparison.
#[derive(Debug, Clone)]
pub struct Speed {
    /// One row per workload.
    pub rows: Vec<Row>,
    /// What writing a key cost: already subtracted.
    pub writing: f64,
}

/// Takes every workload's figures.
///
/// # Errors
/// A decision was refused.
pub fn measure(scale: &Scale) -> Outcome<Speed> {
    let writing = writing_cost(scale)?;
    let mut rows = rows(1, &[Reading::Hot], scale, writing)?;
    for keys in scale.keys {
        rows.extend(self::rows(keys, &[Reading::InCache, Reading::FromArray], scale, writing)?);
    }
    Ok(Speed { rows, writing })
}

/// What drawing and writing a key costs: the least of all rounds, lest a disturbed one be subtracted.
///
/// # Errors
/// Never.
pub fn writing_cost(scale: &Scale) -> Outcome<f64> {
    let draw = Draw::Written { below: scale.filled };
    let run = Run { draw, decisions: scale.decisions };
    let passes = (0..scale.rounds.max(5)).map(|_| draw_only(&run).nanos());
    Ok(passes.collect::<Outcome<Rounds>>()?.least())
}

fn rows(keys: u32, readings: &[Reading], scale: &Scale, writing: f64) -> Outcome<Vec<Row>> {
    let array = keys::array(keys);
    let mut contestants = Vec::new();
    for entrant in Entrant::ALL {
        contestants.push(filled(entrant, keys)?);
    }
    let mut rows = Vec::new();
    for &reading in readings {
        let (draw, subtracted) = match reading {
            Reading::Hot => (Draw::Hot, 0.0),
            Reading::InCache => (Draw::Written { below: keys }, writing),
            Reading::FromArray => (Draw::Array(&array), 0.0),
        };
        let run = Run { draw, decisions: scale.decisions };
        for threads in THREADS {
            let workload = Workload { keys, reading, threads };
            eprintln!("  {}", workload.label());
            let nanos = interleaved(&mut contestants, &run, threads, scale.rounds)?;
            let nanos = nanos.map(|(entrant, rounds)| (entrant, rounds.less(subtracted)));
            rows.push(Row { workload, nanos });
        }
    }
    Ok(rows)
}

fn filled(entrant: Entrant, keys: u32) -> Outcome<Box<dyn Contestant>> {
    let mut contestant = entrant.build(keys)?;
    let draw = Draw::InTurn { from: 0, shape: Shape::User };
    contestant.alone(&Run { draw, decisions: keys }).nanos()?;
    Ok(contestant)
}

/// Everyone's turn in every round, so that what disturbs the machine disturbs all of them.
fn interleaved(
    contestants: &mut [Box<dyn Contestant>],
    run: &Run<'_>,
    threads: u32,
    rounds: u32,
) -> Outcome<[(Entrant, Rounds); Entrant::ALL.len()]> {
    let mut figures = Entrant::ALL.map(|entrant| (entrant, Rounds::default()));
    for _ in 0..rounds {
        for (contestant, (entrant, taken)) in contestants.iter_mut().zip(&mut figures) {
            let pass = pass(contestant.as_mut(), run, threads);
            taken.push(pass.nanos().map_err(|error| format!("{}: {error}", entrant.name()))?);
        }
    }
    Ok(figures)
}

fn pass(contestant: &mut dyn Contestant, run: &Run<'_>, threads: u32) -> Pass {
    match threads {
        1 => contestant.alone(run),
        _ => contestant.together(run, threads),
    }
}

impl Speed {
    /// The figures as a table.
    #[must_use]
    pub fn figures(&self) -> Table {
        let names = Entrant::ALL.map(Entrant::name);
        let mut table = Table::new(std::iter::once("ns per decision").chain(names));
        for row in &self.rows {
            let cells = row.nanos.iter().map(|(_, nanos)| nanos.to_string());
            table.push(std::iter::once(row.workload.label()).chain(cells));
        }
        table
    }

    /// The ratios to governor as a table, with targets.
    #[must_use]
    pub fn ratios(&self) -> Table {
        let mut table = Table::new([
            "× governor",
            "target",
            "tollgate",
            "",
            "tollgate, ticking clock",
            "",
            "floor",
        ]);
        for row in &self.rows {
            let target = row.workload.target();
            let mut cells = vec![row.workload.label(), target.to_string()];
            for entrant in [Entrant::Tollgate, Entrant::Ticking] {
                let ratio = row.ratio(entrant);
                cells.push(format!("{ratio:.2}"));
                cells.push(target.verdict(ratio.median()).to_owned());
            }
            cells.push(format!("{:.2}", row.ratio(Entrant::Floor)));
            table.push(cells);
        }
        table
    }
}
