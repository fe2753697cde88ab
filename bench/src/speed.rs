//! Nanoseconds per decision of all limiters.

use crate::Outcome;
use crate::candidate::Candidate;
use crate::keys::{self, Draw, KeyFormat};
use crate::markdown::Table;
use crate::rounds::Rounds;
use crate::scale::Scale;
use crate::timed_run::{Run, TimedLimiter, draw_only};
use crate::workload::{KeySource, Workload};

const THREADS: [u32; 2] = [1, 2];

/// Figures of one workload, one per limiter.
#[derive(Debug, Clone)]
pub struct Row {
    /// The workload.
    pub workload: Workload,
    /// Nanoseconds per decision of each limiter.
    pub nanos: [(Candidate, Rounds); Candidate::ALL.len()],
}

impl Row {
    /// Subtracts the time to write a key text, for workloads that write it.
    fn minus_key_write(self, key_write_nanos: f64) -> Self {
        if self.workload.key_source != KeySource::InCache {
            return self;
        }
        let nanos =
            self.nanos.map(|(candidate, nanos)| (candidate, nanos.minus_constant(key_write_nanos)));
        Self { nanos, ..self }
    }

    fn ratio(&self, candidate: Candidate) -> Rounds {
        let of = |wanted| self.nanos.iter().find(|(candidate, _)| *candidate == wanted);
        match (of(candidate), of(Candidate::Governor)) {
            (Some((_, figures)), Some((_, baseline))) => figures.relative_to(baseline),
            _ => Rounds::default(),
        }
    }
}

/// The results of all workloads.
#[derive(Debug, Clone)]
pub struct Speed {
    /// One row per workload.
    pub rows: Vec<Row>,
    /// Time to write a key text in nanoseconds; already subtracted.
    pub key_write_nanos: f64,
}

/// A set of keys that all limiters hold, and the workloads on it.
struct KeySet {
    keys: u32,
    key_format: KeyFormat,
    key_sources: &'static [KeySource],
}

/// Measures all workloads.
///
/// # Errors
/// A decision was refused, or a key dropped.
pub fn measure(scale: &Scale) -> Outcome<Speed> {
    let mut key_write_nanos = Rounds::default();
    let mut rows = Vec::new();
    for key_set in key_sets(scale) {
        rows.extend(key_set.rows(scale, &mut key_write_nanos)?);
    }
    // The minimum of all runs, so that a disturbed run is not subtracted.
    let key_write_nanos = key_write_nanos.min();
    let rows = rows.into_iter().map(|row| row.minus_key_write(key_write_nanos)).collect();
    Ok(Speed { rows, key_write_nanos })
}

/// Returns the hot key, then both key formats for each number of keys.
fn key_sets(scale: &Scale) -> Vec<KeySet> {
    let hot = KeySet { keys: 1, key_format: KeyFormat::User, key_sources: &[KeySource::Hot] };
    let mut key_sets = vec![hot];
    for &keys in scale.keys {
        let key_sources: &[KeySource] = if scale.array_keys.contains(&keys) {
            &[KeySource::InCache, KeySource::FromArray]
        } else {
            &[KeySource::InCache]
        };
        key_sets.push(KeySet { keys, key_format: KeyFormat::User, key_sources });
        let key_sources = &[KeySource::InCache];
        key_sets.push(KeySet { keys, key_format: KeyFormat::Uuid, key_sources });
    }
    key_sets
}

/// Measures the time to choose and write a key, in nanoseconds.
fn measure_key_write(scale: &Scale) -> Outcome<f64> {
    let draw = Draw::Written { below: scale.filled, key_format: KeyFormat::User };
    draw_only(&Run { draw, decisions: scale.decisions }).nanos()
}

impl KeySet {
    fn rows(&self, scale: &Scale, key_write_nanos: &mut Rounds) -> Outcome<Vec<Row>> {
        let &Self { keys, key_format, key_sources } = self;
        let array = keys::array(keys);
        let mut limiters = Vec::new();
        for candidate in Candidate::ALL {
            limiters.push(self.filled(candidate)?);
        }
        let mut rows = Vec::new();
        for &key_source in key_sources {
            // A hot key is so fast that a normal run would fit in one scheduler tick.
            let factor = if key_source == KeySource::Hot { 5 } else { 1 };
            for threads in THREADS {
                let workload = Workload { keys, key_format, key_source, threads };
                eprintln!("  {}", workload.label());
                key_write_nanos.push(measure_key_write(scale)?);
                let run = Run { draw: workload.draw(&array), decisions: scale.decisions * factor };
                let nanos = interleaved(&mut limiters, &run, threads, scale.rounds)?;
                rows.push(Row { workload, nanos });
            }
        }
        Ok(rows)
    }

    fn filled(&self, candidate: Candidate) -> Outcome<Box<dyn TimedLimiter>> {
        let mut limiter = candidate.build(self.keys)?;
        let draw = Draw::Sequential { from: 0, key_format: self.key_format };
        limiter.run_exclusive(&Run { draw, decisions: self.keys }).nanos()?;
        Ok(limiter)
    }
}

/// Runs every limiter once per round, so that disturbances of the machine affect all of them.
fn interleaved(
    limiters: &mut [Box<dyn TimedLimiter>],
    run: &Run<'_>,
    threads: u32,
    rounds: u32,
) -> Outcome<[(Candidate, Rounds); Candidate::ALL.len()]> {
    let mut figures = Candidate::ALL.map(|candidate| (candidate, Rounds::default()));
    for round in 0..rounds {
        for (limiter, (candidate, figures)) in limiters.iter_mut().zip(&mut figures) {
            if round >= candidate.rounds(rounds) {
                continue;
            }
            let run = Run { decisions: candidate.decisions(run.decisions), ..*run };
            let nanos = warm_and_time(limiter.as_mut(), &run, threads);
            figures.push(nanos.map_err(|error| format!("{}: {error}", candidate.name()))?);
        }
    }
    Ok(figures)
}

fn warm_and_time(limiter: &mut dyn TimedLimiter, run: &Run<'_>, threads: u32) -> Outcome<f64> {
    limiter.warm_up(&Run { decisions: run.decisions / 4, ..*run });
    let timing = match threads {
        1 => limiter.run_exclusive(run),
        _ => limiter.run_threads(run, threads),
    };
    limiter.check_no_drops()?;
    timing.nanos()
}

impl Speed {
    /// Returns the figures as a table.
    #[must_use]
    pub fn figures(&self) -> Table {
        let names = Candidate::ALL.map(Candidate::name);
        let mut table = Table::new(std::iter::once("ns per decision").chain(names));
        for row in &self.rows {
            let cells = row.nanos.iter().map(|(_, nanos)| nanos.to_string());
            table.push(std::iter::once(row.workload.label()).chain(cells));
        }
        table
    }

    /// Returns the ratios to governor as a table, with targets.
    #[must_use]
    pub fn ratios(&self) -> Table {
        let mut table = Table::new([
            "× governor",
            "target",
            "tollgate",
            "",
            "tollgate, ticking clock",
            "",
            "tollgate, verdict only",
            "",
            "floor",
        ]);
        for row in &self.rows {
            let target = row.workload.target();
            let mut cells = vec![row.workload.label(), target.to_string()];
            for candidate in [Candidate::Tollgate, Candidate::Ticking, Candidate::Verdict] {
                let ratio = row.ratio(candidate);
                cells.push(format!("{ratio:.2}"));
                cells.push(target.verdict(ratio.median()).to_owned());
            }
            cells.push(format!("{:.2}", row.ratio(Candidate::Floor)));
            table.push(cells);
        }
        table
    }
}
