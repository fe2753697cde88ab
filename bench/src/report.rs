//! The report on the core library.

use std::fmt;
use std::path::Path;

use crate::document::{Document, Section};
use crate::machine::{self, RunInfo};
use crate::scale::Scale;
use crate::speed::Speed;
use crate::{Outcome, memory, near_cap, pauses, speed};

/// All results.
#[derive(Debug, Clone)]
pub struct Report {
    run_info: RunInfo,
    scale: Scale,
    speed: Speed,
    near_cap: Vec<near_cap::Row>,
    pauses: Vec<pauses::Row>,
    memory: Vec<memory::Row>,
}

impl Report {
    /// Runs all measurements. `program` is this package's `core` binary, which is also started as a
    /// child process.
    ///
    /// # Errors
    /// A measurement is invalid: a decision was refused, or a child process failed.
    pub fn measure(scale: Scale, program: &Path, run_info: RunInfo) -> Outcome<Self> {
        eprintln!("memory");
        let memory = memory::measure(program, &scale)?;
        eprintln!("speed");
        let speed = speed::measure(&scale)?;
        eprintln!("near the cap");
        let near_cap = near_cap::measure(&scale, speed.key_write_nanos)?;
        eprintln!("pauses");
        let pauses = pauses::measure(&scale)?;
        Ok(Self { run_info, scale, speed, near_cap, pauses, memory })
    }

    /// Returns all figures, to check that they are valid.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        let speed = self.speed.rows.iter().flat_map(|row| &row.nanos).map(|(_, nanos)| nanos);
        let costs = self.near_cap.iter().flat_map(|row| [&row.tollgate, &row.throttlecrab]);
        let near_cap = costs.flat_map(|costs| [&costs.known, &costs.new]);
        let pauses = self.pauses.iter().flat_map(|row| [&row.p999, &row.slowest]);
        let memory = self.memory.iter().map(|row| &row.bytes);
        let all = speed.chain(near_cap).chain(pauses).chain(memory);
        all.flat_map(|rounds| [rounds.min(), rounds.median(), rounds.max()]).collect()
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, refills, .. } = self.scale;
        Document {
            title: "Core library, in process",
            run_info: &self.run_info,
            peers: vec![machine::peer("governor"), machine::peer("throttlecrab")],
            figures: format!(
                "median (min–max) of {rounds} rounds, or of {refills} where each round fills an empty \
                 store; every candidate runs once per round, ratios are computed per round"
            ),
            sections: vec![self.decisions(), self.near_the_cap(), self.pauses(), self.memory()],
        }
    }

    fn decisions(&self) -> Section {
        let key_write_nanos = self.speed.key_write_nanos;
        let note = format!(
            "Token bucket; random string keys of 13 bytes unless stated otherwise; every decision is \
             allowed and no key is dropped. The time is the latency for the calling thread. An untimed \
             run with a quarter of the decisions precedes each timed run.\n\n\
             - *In cache*: the key text is written into a reused string just before the decision. This \
             takes {key_write_nanos:.1} ns, which are subtracted.\n\
             - *From an array*: the key text is read from an array of all keys. This time is not \
             subtracted.\n\
             - *throttlecrab*: its capacity is the number of keys. It needs exclusive access: two \
             threads share it through a `Mutex`, one thread uses it without a lock. Its runs have a \
             third of the decisions of the others, and at most three rounds.\n\
             - *Verdict only*: `LocalLimiter::check`, which returns a verdict and no figures, as \
             governor does.\n\
             - *Floor*: a lower bound: a fixed table of 16-byte slots, a hash in place of the key, the \
             CPU's time-stamp counter, no key limit, no cleanup. It shows which part of every figure \
             is due to the key text and to memory access."
        );
        let tables = vec![self.speed.figures(), self.speed.ratios()];
        Section { title: "Decisions", note, tables }
    }

    fn near_the_cap(&self) -> Section {
        let note = format!(
            "One thread, keys in cache, a cap of {} keys: tollgate's `max_keys`, and the size at which \
             throttlecrab's map grows. New keys are the last 1 % before each fill level. Above its \
             cap, tollgate allows new keys without tracking them; throttlecrab's map doubles when it \
             is full.",
            self.scale.cap,
        );
        Section { title: "Near the cap", note, tables: vec![near_cap::table(&self.near_cap)] }
    }

    fn pauses(&self) -> Section {
        let note = "One thread adds new keys to an empty store; each decision is timed separately. *No \
                    limiter* times an empty operation for as long as tollgate needs to fill its store, and \
                    shows the pauses of the machine itself.";
        let tables = vec![pauses::table(&self.pauses, &self.scale)];
        Section { title: "Pauses", note: note.to_owned(), tables }
    }

    fn memory(&self) -> Section {
        let note = "Growth of the resident memory of a new process. throttlecrab's capacity is the \
                    number of keys.";
        let tables = vec![memory::table(&self.memory, &self.scale)];
        Section { title: "Memory", note: note.to_owned(), tables }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}
