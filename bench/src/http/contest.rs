//! Everyone's turn in every round, so that what disturbs the machine disturbs all of them.

use super::contender::{Contender, Stage};
use super::figures::Figures;
use super::sample::Sample;
use super::scale::Scale;
use crate::Outcome;
use crate::work::Work;

/// Where contenders meet, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Contest<'s> {
    /// Where.
    pub stage: &'s Stage,
    /// How long.
    pub scale: &'s Scale,
}

impl Contest<'_> {
    /// Lets every key ask once.
    ///
    /// # Errors
    /// An answer that is not the right one.
    pub fn fill(&self, contender: &Contender) -> Outcome<Sample> {
        self.stage.load(contender, self.scale.connections, Work::Fill)
    }

    /// Takes all rounds.
    ///
    /// # Errors
    /// An answer that is not the right one.
    pub fn rounds<const N: usize>(&self, contenders: [&Contender; N]) -> Outcome<[Figures; N]> {
        let mut figures = contenders.map(|_| Figures::default());
        for _ in 0..self.scale.rounds {
            for (contender, taken) in contenders.iter().zip(&mut figures) {
                let work = self.scale.work();
                taken.push(&self.stage.load(contender, self.scale.connections, work)?);
            }
        }
        Ok(figures)
    }
}
