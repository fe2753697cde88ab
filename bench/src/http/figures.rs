//! The samples of several rounds.

use super::sample::Sample;
use crate::rounds::Rounds;

/// One server's figures, a round each; see [`Sample`].
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Answers a second.
    pub per_second: Rounds,
    /// Latencies in microseconds.
    pub p50: Rounds,
    /// See [`Sample::p99`].
    pub p99: Rounds,
    /// See [`Sample::p999`].
    pub p999: Rounds,
    /// The server's processor time per answer, in microseconds.
    pub server_micros: Rounds,
    /// The load generator's share of its core.
    pub load_share: Rounds,
}

impl Figures {
    /// One more round.
    pub fn push(&mut self, sample: &Sample) {
        self.per_second.push(sample.per_second);
        self.p50.push(sample.p50);
        self.p99.push(sample.p99);
        self.p999.push(sample.p999);
        self.server_micros.push(sample.server_micros);
        self.load_share.push(sample.load_share);
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> [&Rounds; 6] {
        let Self { per_second, p50, p99, p999, server_micros, load_share } = self;
        [per_second, p50, p99, p999, server_micros, load_share]
    }
}
