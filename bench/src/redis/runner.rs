//! Runs every scenario once per round, so that disturbances of the machine affect all of them.

use super::deployment::Deployment;
use super::figures::Figures;
use super::limits::Limits;
use super::method::Method;
use super::sample::Sample;
use super::scale::Scale;
use super::task::RequestSpec;
use crate::Outcome;
use crate::load_mode::LoadMode;

/// Runs scenarios against one deployment.
#[derive(Debug, Clone, Copy)]
pub struct Runner<'s> {
    /// The deployment.
    pub deployment: &'s Deployment,
    /// Rounds, times and numbers of keys.
    pub scale: &'s Scale,
}

/// The keys of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Many keys with equal probability. All have been used before.
    Many,
    /// One key, a new one in every run.
    Hot,
}

/// One measurement: method, callers, keys and limits.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The method.
    pub method: Method,
    /// The number of concurrent callers.
    pub callers: u32,
    /// The keys.
    pub keys: Keys,
    /// The limits.
    pub limits: Limits,
    /// The burst of each limit.
    pub burst: u32,
}

impl Scenario {
    /// Creates a scenario in which every request is allowed.
    #[must_use]
    pub const fn always_allowed(method: Method, callers: u32, keys: Keys, limits: Limits) -> Self {
        Self { method, callers, keys, limits, burst: limits.ample_burst() }
    }
}

impl Runner<'_> {
    /// Sends one request per key.
    ///
    /// # Errors
    /// A decision is wrong.
    pub fn fill(&self, method: Method, limits: Limits) -> Outcome<()> {
        let Scale { keys, callers: [callers, _], .. } = *self.scale;
        let requests = RequestSpec { keys, first: 0, limits, burst: limits.ample_burst() };
        self.deployment.load(method, callers, requests, LoadMode::Fill).map(|_| ())
    }

    /// Checks that an exhausted limit has admitted exactly its burst with concurrent callers.
    ///
    /// # Errors
    /// It has not, or it was not exhausted.
    pub fn check_exactness(&self, method: Method, limits: Limits) -> Outcome<()> {
        const BURST: u32 = 3;
        let Scale { callers: [callers, _], .. } = *self.scale;
        for keys in [1, callers] {
            let requests = RequestSpec {
                keys,
                first: self.deployment.unused_keys(keys),
                limits,
                burst: BURST,
            };
            let sample =
                self.deployment.load(method, callers, requests, self.scale.check_mode())?;
            if sample.allowed >= sample.answered {
                return Err(format!("{}: no request was refused", method.name()).into());
            }
        }
        Ok(())
    }

    /// Runs all rounds.
    ///
    /// # Errors
    /// A decision is wrong.
    pub fn rounds(&self, scenarios: &[Scenario]) -> Outcome<Vec<Figures>> {
        let mut figures = vec![Figures::default(); scenarios.len()];
        for _ in 0..self.scale.rounds {
            for (scenario, scenario_figures) in scenarios.iter().zip(&mut figures) {
                scenario_figures.push(&self.run_once(*scenario)?);
            }
        }
        Ok(figures)
    }

    /// Runs one scenario once.
    ///
    /// # Errors
    /// A decision is wrong.
    pub fn run_once(&self, scenario: Scenario) -> Outcome<Sample> {
        let Scenario { method, callers, limits, burst, .. } = scenario;
        let (keys, first) = match scenario.keys {
            Keys::Many => (self.scale.keys, 0),
            Keys::Hot => (1, self.deployment.unused_keys(1)),
        };
        let requests = RequestSpec { keys, first, limits, burst };
        let sample = self.deployment.load(method, callers, requests, self.scale.timed_mode())?;
        if burst == limits.ample_burst() && sample.allowed < sample.answered {
            return Err(format!("{}: a request was refused", method.name()).into());
        }
        Ok(sample)
    }
}
