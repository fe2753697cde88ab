//! Everyone's turn in every round, so that what disturbs the machine disturbs all of them.

use super::figures::Figures;
use super::limits::Limits;
use super::sample::Sample;
use super::scale::Scale;
use super::stage::Stage;
use super::task::Ask;
use super::way::Way;
use crate::Outcome;
use crate::work::Work;

/// Where ways of asking meet, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Contest<'s> {
    /// Where.
    pub stage: &'s Stage,
    /// How long.
    pub scale: &'s Scale,
}

/// Which keys ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Many, each as likely as another, that have all asked before.
    Many,
    /// One, which is another in every run.
    Hot,
}

/// One who takes part.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// How they ask.
    pub way: Way,
    /// How many they are.
    pub callers: u32,
    /// For whom.
    pub keys: Keys,
    /// About what.
    pub limits: Limits,
    /// How much a key may have.
    pub burst: u32,
}

impl Entry {
    /// Callers who are never refused.
    #[must_use]
    pub const fn plenty(way: Way, callers: u32, keys: Keys, limits: Limits) -> Self {
        Self { way, callers, keys, limits, burst: limits.plenty() }
    }
}

impl Contest<'_> {
    /// Lets every key ask once.
    ///
    /// # Errors
    /// An answer that is not the right one.
    pub fn fill(&self, way: Way, limits: Limits) -> Outcome<()> {
        let Scale { keys, callers: [callers, _], .. } = *self.scale;
        let ask = Ask { keys, first: 0, limits, burst: limits.plenty() };
        self.stage.load(way, callers, ask, Work::Fill).map(|_| ())
    }

    /// Whether a limit that is used up admits exactly what it should, whoever asks at the same time.
    ///
    /// # Errors
    /// It does not, or it was not used up.
    pub fn prove(&self, way: Way, limits: Limits) -> Outcome<()> {
        const BURST: u32 = 3;
        let Scale { callers: [callers, _], .. } = *self.scale;
        for keys in [1, callers] {
            let ask = Ask { keys, first: self.stage.fresh(keys), limits, burst: BURST };
            let sample = self.stage.load(way, callers, ask, self.scale.proof())?;
            if sample.allowed >= sample.answered {
                return Err(format!("{}: nobody was refused", way.name()).into());
            }
        }
        Ok(())
    }

    /// Takes all rounds.
    ///
    /// # Errors
    /// An answer that is not the right one.
    pub fn rounds(&self, entries: &[Entry]) -> Outcome<Vec<Figures>> {
        let mut figures = vec![Figures::default(); entries.len()];
        for _ in 0..self.scale.rounds {
            for (entry, taken) in entries.iter().zip(&mut figures) {
                taken.push(&self.turn(*entry)?);
            }
        }
        Ok(figures)
    }

    /// Takes the figures of one for once.
    ///
    /// # Errors
    /// An answer that is not the right one.
    pub fn turn(&self, entry: Entry) -> Outcome<Sample> {
        let Entry { way, callers, limits, burst, .. } = entry;
        let (keys, first) = match entry.keys {
            Keys::Many => (self.scale.keys, 0),
            Keys::Hot => (1, self.stage.fresh(1)),
        };
        let ask = Ask { keys, first, limits, burst };
        let sample = self.stage.load(way, callers, ask, self.scale.work())?;
        if burst == limits.plenty() && sample.allowed < sample.answered {
            return Err(format!("{}: a request was refused", way.name()).into());
        }
        Ok(sample)
    }
}
