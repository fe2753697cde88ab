//! The samples of several rounds.

use super::sample::Sample;
use crate::rounds::Rounds;

/// The figures of one way of asking, a round each; see [`Sample`].
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Decisions a second.
    pub per_second: Rounds,
    /// Latencies in microseconds.
    pub p50: Rounds,
    /// See [`Sample::p99`].
    pub p99: Rounds,
    /// Redis's processor time per decision, in microseconds.
    pub redis_micros: Rounds,
    /// The same of the process that asks.
    pub client_micros: Rounds,
    /// Commands of Redis per decision, those of scripts included.
    pub commands: Rounds,
}

impl Figures {
    /// One more round.
    pub fn push(&mut self, sample: &Sample) {
        self.per_second.push(sample.per_second);
        self.p50.push(sample.p50);
        self.p99.push(sample.p99);
        self.redis_micros.push(sample.redis_micros);
        self.client_micros.push(sample.client_micros);
        self.commands.push(sample.commands / sample.answered);
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> [&Rounds; 6] {
        let Self { per_second, p50, p99, redis_micros, client_micros, commands } = self;
        [per_second, p50, p99, redis_micros, client_micros, commands]
    }
}
