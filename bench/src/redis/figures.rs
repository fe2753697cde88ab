//! Figures of several rounds.

use super::sample::Sample;
use crate::rounds::Rounds;

/// Figures of one scenario, one value per round; see [`Sample`].
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Decisions per second.
    pub per_second: Rounds,
    /// Median latency in microseconds.
    pub p50: Rounds,
    /// See [`Sample::p99`].
    pub p99: Rounds,
    /// CPU time of Redis per decision, in microseconds.
    pub redis_micros: Rounds,
    /// CPU time of the load generator per decision, in microseconds.
    pub client_micros: Rounds,
    /// Redis commands per decision, including those of scripts.
    pub commands: Rounds,
    /// Script and function calls per decision.
    pub script_calls: Rounds,
}

impl Figures {
    /// Adds the figures of a round.
    pub fn push(&mut self, sample: &Sample) {
        self.per_second.push(sample.per_second);
        self.p50.push(sample.p50);
        self.p99.push(sample.p99);
        self.redis_micros.push(sample.redis_micros);
        self.client_micros.push(sample.client_micros);
        self.commands.push(sample.commands / sample.answered);
        self.script_calls.push(sample.script_calls / sample.answered);
    }

    /// Returns all figures.
    #[must_use]
    pub fn all(&self) -> [&Rounds; 7] {
        let Self { per_second, p50, p99, redis_micros, client_micros, commands, script_calls } =
            self;
        [per_second, p50, p99, redis_micros, client_micros, commands, script_calls]
    }
}
