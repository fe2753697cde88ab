//! Runs every server once per round, with one request in flight on each connection.

use super::candidate::Programs;
use super::scale::Scale;
use crate::Outcome;
use crate::load::candidate::Candidate;
use crate::load::figures::Figures;
use crate::load::runner::Runner as LoadRunner;
use crate::load::sample::Sample;
use crate::load::system_calls::{self, SystemCalls};

/// Runs the load against servers.
#[derive(Debug, Clone, Copy)]
pub struct Runner<'s> {
    /// The programs.
    pub programs: &'s Programs,
    /// Rounds, times and numbers of keys.
    pub scale: &'s Scale,
}

impl Runner<'_> {
    /// Sends one request per key.
    ///
    /// # Errors
    /// A response is not the expected one.
    pub fn fill(&self, candidate: &Candidate) -> Outcome<Sample> {
        self.load_runner().fill(candidate, 1)
    }

    /// Runs all rounds.
    ///
    /// # Errors
    /// A response is not the expected one.
    pub fn rounds<const N: usize>(&self, candidates: [&Candidate; N]) -> Outcome<[Figures; N]> {
        self.load_runner().rounds(candidates, 1)
    }

    /// Counts the system calls of a timed run; `None` if they cannot be counted.
    ///
    /// # Errors
    /// A response is not the expected one.
    pub fn system_calls(&self, candidate: &Candidate) -> Outcome<Option<SystemCalls>> {
        system_calls::measure(&self.load_runner(), candidate)
    }

    fn load_runner(&self) -> LoadRunner {
        let Scale { connections, rounds, .. } = *self.scale;
        let Programs { load, cores, .. } = self.programs;
        let (program, cores, timed) = (load.clone(), *cores, self.scale.timed_mode());
        LoadRunner { program, cores, connections, rounds, timed }
    }
}
