//! Runs every server once per round, so that disturbances of the machine affect all of them.

use super::candidate::{Candidate, Programs};
use super::figures::Figures;
use super::sample::Sample;
use super::scale::Scale;
use crate::Outcome;
use crate::load_mode::LoadMode;

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
        self.programs.load(candidate, self.scale.connections, LoadMode::Fill)
    }

    /// Runs all rounds.
    ///
    /// # Errors
    /// A response is not the expected one.
    pub fn rounds<const N: usize>(&self, candidates: [&Candidate; N]) -> Outcome<[Figures; N]> {
        let mut figures = candidates.map(|_| Figures::default());
        for _ in 0..self.scale.rounds {
            for (candidate, round_figures) in candidates.iter().zip(&mut figures) {
                let mode = self.scale.timed_mode();
                round_figures.push(&self.programs.load(candidate, self.scale.connections, mode)?);
            }
        }
        Ok(figures)
    }
}
