//! The whole document.

use std::fmt;
use std::path::Path;

use crate::machine::{self, Given};
use crate::markdown::Table;
use crate::scale::Scale;
use crate::speed::Speed;
use crate::{Outcome, fullness, memory, pauses, speed};

/// Everything that was measured.
#[derive(Debug, Clone)]
pub struct Report {
    given: Given,
    scale: Scale,
    speed: Speed,
    fullness: Vec<fullness::Row>,
    pauses: Vec<pauses::Row>,
    memory: Vec<memory::Row>,
}

impl Report {
    /// Measures everything. `program` is this package's `core`, which is its own child.
    ///
    /// # Errors
    /// A measurement that would not be one: a refused decision, a child that failed.
    pub fn measure(scale: Scale, program: &Path, given: Given) -> Outcome<Self> {
        eprintln!("memory");
        let memory = memory::measure(program, &scale)?;
        eprintln!("speed");
        let speed = speed::measure(&scale)?;
        eprintln!("fullness");
        let fullness = fullness::measure(&scale, speed.writing)?;
        eprintln!("pauses");
        let pauses = pauses::measure(&scale)?;
        Ok(Self { given, scale, speed, fullness, pauses, memory })
    }

    /// Every figure in it.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        let speed = self.speed.rows.iter().flat_map(|row| &row.nanos).map(|(_, nanos)| nanos);
        let costs = self.fullness.iter().flat_map(|row| [&row.tollgate, &row.throttlecrab]);
        let fullness = costs.flat_map(|costs| [&costs.known, &costs.new]);
        let pauses = self.pauses.iter().flat_map(|row| [&row.p999, &row.slowest]);
        let memory = self.memory.iter().map(|row| &row.bytes);
        let all = speed.chain(fullness).chain(pauses).chain(memory);
        all.flat_map(|rounds| [rounds.least(), rounds.median(), rounds.most()]).collect()
    }

    fn sections(&self) -> [(&'static str, String, Vec<Table>); 4] {
        let Self { scale, speed, .. } = self;
        [
            (
                "Decisions",
                format!(
                    "Token bucket, string keys of 13 bytes drawn at random, every decision allowed, \
                     no key ever dropped. Time is what the asking thread waits. *In cache*: the key's \
                     text is written into one reused string just before the decision; writing it \
                     costs {:.1} ns by itself, which is subtracted. *From an array*: its text is read \
                     from an array of as many strings, and that is not subtracted. throttlecrab has \
                     the number of keys as its capacity; it needs exclusive access, so two threads \
                     share it behind a `Mutex`, and one thread uses it without. *Floor*: a fixed table \
                     of 16-byte slots, a hash in place of the key, the processor's own clock, no \
                     bound and no cleaning; it shows how much of a figure is the key's text and the \
                     machine's memory.",
                    speed.writing,
                ),
                vec![speed.figures(), speed.ratios()],
            ),
            (
                "Near the cap",
                format!(
                    "One thread, keys in cache, a cap of {} keys: tollgate's `max_keys`, and what \
                     throttlecrab's map has room for before it grows. New keys are the last 1 % before \
                     each share. Above its cap tollgate lets new keys pass untracked; throttlecrab's \
                     map doubles once it is full.",
                    scale.cap,
                ),
                vec![fullness::table(&self.fullness)],
            ),
            (
                "Pauses",
                "One thread adds key after key to an empty store, every decision timed by itself. The \
                 first row times nothing at all: what it shows is the machine's own."
                    .to_owned(),
                vec![pauses::table(&self.pauses, scale)],
            ),
            (
                "Memory",
                "Growth of a fresh process's resident memory per key. throttlecrab has the number of \
                 keys as its capacity."
                    .to_owned(),
                vec![memory::table(&self.memory, scale)],
            ),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Given { date, rustc, command } = &self.given;
        writeln!(f, "## Core library, in process\n")?;
        writeln!(f, "- Machine: {}", machine::describe())?;
        writeln!(f, "- Date: {date}")?;
        writeln!(f, "- Compiler: {rustc}, release profile")?;
        writeln!(f, "- Peers: {}, {}", machine::peer("governor"), machine::peer("throttlecrab"))?;
        writeln!(f, "- Command: `{command}`")?;
        let rounds = self.scale.rounds;
        writeln!(f, "- Figures: median (least–most) of {rounds} rounds, everyone's turn in each")?;
        for (title, note, tables) in self.sections() {
            writeln!(f, "\n### {title}\n\n{note}")?;
            for table in tables {
                write!(f, "\n{table}")?;
            }
        }
        Ok(())
    }
}
