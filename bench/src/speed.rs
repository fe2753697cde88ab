//! Nanoseconds per decision, side by side.

use crate::Outcome;
use crate::entrant::Entrant;
use crate::keys::{self, Draw, Shape};
use crate::markdown::Table;
use crate::rounds::Rounds;
use crate::scale::Scale;
use crate::timed_run::{Contestant, Run, draw_only};
use crate::workload::{Reading, Workload};

const THREADS: [u32; 2] = [1, 2];

/// One workload's figures, one per entrant.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was asked.
    pub workload: Workload,
    /// What it cost each.
    pub nanos: [(Entrant, Rounds); Entrant::ALL.len()],
}

impl Row {
    /// The same without what writing the keys cost, where they were written.
    fn without(self, writing: f64) -> Self {
        if self.workload.reading != Reading::InCache {
            return self;
        }
        let nanos = self.nanos.map(|(entrant, nanos)| (entrant, nanos.less(writing)));
        Self { nanos, ..self }
    }

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

/// Keys that are asked for in several ways once everyone holds them.
struct Field {
    keys: u32,
    shape: Shape,
    readings: &'static [Reading],
}

/// Takes every workload's figures.
///
/// # Errors
/// A decision was refused, or a key dropped.
pub fn measure(scale: &Scale) -> Outcome<Speed> {
    let mut writing = Rounds::default();
    let [some, many] = scale.keys;
    let readings = &[Reading::InCache, Reading::FromArray];
    let mut rows = Vec::new();
    for field in [
        Field { keys: 1, shape: Shape::User, readings: &[Reading::Hot] },
        Field { keys: some, shape: Shape::User, readings },
        Field { keys: many, shape: Shape::User, readings },
        Field { keys: many, shape: Shape::Uuid, readings: &[Reading::InCache] },
    ] {
        rows.extend(field.rows(scale, &mut writing)?);
    }
    // The least of the whole run, lest a disturbed one be subtracted.
    let writing = writing.least();
    let rows = rows.into_iter().map(|row| row.without(writing)).collect();
    Ok(Speed { rows, writing })
}

/// What drawing and writing a key costs by itself.
fn writing_cost(scale: &Scale) -> Outcome<f64> {
    let draw = Draw::Written { below: scale.filled, shape: Shape::User };
    draw_only(&Run { draw, decisions: scale.decisions }).nanos()
}

impl Field {
    fn rows(&self, scale: &Scale, writing: &mut Rounds) -> Outcome<Vec<Row>> {
        let &Self { keys, shape, readings } = self;
        let array = keys::array(keys);
        let mut contestants = Vec::new();
        for entrant in Entrant::ALL {
            contestants.push(self.filled(entrant)?);
        }
        let mut rows = Vec::new();
        for &reading in readings {
            // A hot key is so fast that a usual pass would be over within a scheduler's tick.
            let longer = if reading == Reading::Hot { 5 } else { 1 };
            for threads in THREADS {
                let workload = Workload { keys, shape, reading, threads };
                eprintln!("  {}", workload.label());
                writing.push(writing_cost(scale)?);
                let run = Run { draw: workload.draw(&array), decisions: scale.decisions * longer };
                let nanos = interleaved(&mut contestants, &run, threads, scale.rounds)?;
                rows.push(Row { workload, nanos });
            }
        }
        Ok(rows)
    }

    fn filled(&self, entrant: Entrant) -> Outcome<Box<dyn Contestant>> {
        let mut contestant = entrant.build(self.keys)?;
        let draw = Draw::InTurn { from: 0, shape: self.shape };
        contestant.alone(&Run { draw, decisions: self.keys }).nanos()?;
        Ok(contestant)
    }
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
            let run = Run { decisions: entrant.decisions(run.decisions), ..*run };
            let nanos = pass(contestant.as_mut(), &run, threads);
            taken.push(nanos.map_err(|error| format!("{}: {error}", entrant.name()))?);
        }
    }
    Ok(figures)
}

fn pass(contestant: &mut dyn Contestant, run: &Run<'_>, threads: u32) -> Outcome<f64> {
    contestant.warm_up(&Run { decisions: run.decisions / 4, ..*run });
    let pass = match threads {
        1 => contestant.alone(run),
        _ => contestant.together(run, threads),
    };
    contestant.holds_all()?;
    pass.nanos()
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
