//! Figures of several rounds.

use super::sample::Sample;
use crate::rounds::Rounds;

/// Figures of one server, one value per round; see [`Sample`].
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Responses per second.
    pub per_second: Rounds,
    /// Median latency in microseconds.
    pub p50: Rounds,
    /// See [`Sample::p99`].
    pub p99: Rounds,
    /// See [`Sample::p999`].
    pub p999: Rounds,
    /// CPU time of the server per response, in microseconds.
    pub server_micros: Rounds,
    /// Share of its core that the server used.
    pub server_share: Rounds,
    /// Share of its core that the load generator used.
    pub load_share: Rounds,
}

impl Figures {
    /// Adds the figures of a round.
    pub fn push(&mut self, sample: &Sample) {
        self.per_second.push(sample.per_second);
        self.p50.push(sample.p50);
        self.p99.push(sample.p99);
        self.p999.push(sample.p999);
        self.server_micros.push(sample.server_micros);
        self.server_share.push(sample.server_share);
        self.load_share.push(sample.load_share);
    }

    /// Returns all figures.
    #[must_use]
    pub fn all(&self) -> [&Rounds; 7] {
        let Self { per_second, p50, p99, p999, server_micros, server_share, load_share } = self;
        [per_second, p50, p99, p999, server_micros, server_share, load_share]
    }
}
