//! All figures of the core library.

use std::fmt;
use std::path::Path;

use crate::document::{Document, Section};
use crate::machine::{self, Given};
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

    fn document(&self) -> Document<'_> {
        let Scale { rounds, refills, .. } = self.scale;
        Document {
            title: "Core library, in process",
            given: &self.given,
            peers: vec![machine::peer("governor"), machine::peer("throttlecrab")],
            figures: format!(
                "median (least–most) of {rounds} rounds of decisions, and of {refills} where stores are \
                 filled anew; everyone's turn in each round, ratios taken round by round"
            ),
            sections: vec![self.decisions(), self.near_the_cap(), self.pauses(), self.memory()],
        }
    }

    fn decisions(&self) -> Section {
        let writing = self.speed.writing;
        let note = format!(
            "Token bucket; string keys drawn at random, of 13 bytes where nothing else is said; every \
             decision allowed and no key ever dropped. Time is what the asking thread waits. An untimed \
             pass of a quarter's length goes before each.\n\n\
             - *In cache*: the key's text is written into one reused string just before the decision. \
             Writing it takes {writing:.1} ns by itself, which is subtracted.\n\
             - *From an array*: the key's text is read from an array of as many strings. That is not \
             subtracted.\n\
             - *throttlecrab* has the number of keys as its capacity. It needs exclusive access: two \
             threads share it behind a `Mutex`, one thread does without. Its passes have a third of the \
             others' decisions.\n\
             - *Floor*: a fixed table of 16-byte slots, a hash in place of the key, the processor's own \
             clock, no bound, no cleaning. So much of every figure is the key's text and the machine's \
             memory."
        );
        let tables = vec![self.speed.figures(), self.speed.ratios()];
        Section { title: "Decisions", note, tables }
    }

    fn near_the_cap(&self) -> Section {
        let note = format!(
            "One thread, keys in cache, a cap of {} keys: tollgate's `max_keys`, and what throttlecrab's \
             map has room for before it grows. New keys are the last 1 % before each share. Above its \
             cap tollgate lets new keys pass untracked; throttlecrab's map doubles once it is full.",
            self.scale.cap,
        );
        Section { title: "Near the cap", note, tables: vec![fullness::table(&self.fullness)] }
    }

    fn pauses(&self) -> Section {
        let note = "One thread adds key after key to an empty store, every decision timed by itself. \
                    The first row times nothing at all: what it shows is the machine's own.";
        let tables = vec![pauses::table(&self.pauses, &self.scale)];
        Section { title: "Pauses", note: note.to_owned(), tables }
    }

    fn memory(&self) -> Section {
        let note = "Growth of a fresh process's resident memory. throttlecrab has the number of keys as \
                    its capacity.";
        let tables = vec![memory::table(&self.memory, &self.scale)];
        Section { title: "Memory", note: note.to_owned(), tables }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}
