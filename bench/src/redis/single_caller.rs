//! Latency of a single caller.

use super::figures::Figures;
use super::limits::Limits;
use super::method::Method;
use super::redis_benchmark::Run;
use super::runner::{Keys, Runner, Scenario};
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;

/// Target for the p50 ratio to the baseline: the same round trip and script, and 10 % for
/// differences between the clients.
const VS_BASELINE: Target = Target::AtMost(1.1);

/// Latencies of a single caller.
#[derive(Debug, Clone)]
pub struct SingleCaller {
    /// Figures of tollgate.
    pub tollgate: Figures,
    /// Figures of the baseline, one shared connection.
    pub baseline: Figures,
    /// Median latency of `PING` in microseconds.
    pub ping: Rounds,
}

impl SingleCaller {
    /// Measures all of them, once per round.
    ///
    /// # Errors
    /// A decision is wrong.
    pub fn measure(runner: Runner<'_>) -> Outcome<Self> {
        let scenario =
            |method| Scenario::always_allowed(method, 1, Keys::Many, Limits::TokenBucket);
        let (mut tollgate, mut baseline) = (Figures::default(), Figures::default());
        let mut ping = Rounds::default();
        let [requests, _] = runner.scale.requests;
        for _ in 0..runner.scale.rounds {
            tollgate.push(&runner.run_once(scenario(Method::Tollgate))?);
            baseline.push(&runner.run_once(scenario(Method::Multiplexed))?);
            let run = Run {
                connections: 1,
                pipeline: 1,
                requests: requests / 10,
                keys: 1,
                command: &["PING"],
            };
            ping.push(run.take(runner.deployment)?.p50);
        }
        Ok(Self { tollgate, baseline, ping })
    }

    /// Returns the figures as a table.
    #[must_use]
    pub fn table(&self) -> Table {
        let Self { tollgate, baseline, ping } = self;
        let ratio_label = format!("× {}", Method::Multiplexed.label());
        let mut table = Table::new(["1 caller", "p50 µs", "p99 µs", &ratio_label, "target", ""]);
        let ratio = tollgate.p50.relative_to(&baseline.p50);
        table.push([
            Method::Tollgate.label().to_owned(),
            tollgate.p50.to_string(),
            tollgate.p99.to_string(),
            format!("{ratio:.2}"),
            VS_BASELINE.to_string(),
            VS_BASELINE.verdict(ratio.median()).to_owned(),
        ]);
        let empty = String::new;
        table.push([
            Method::Multiplexed.label().to_owned(),
            baseline.p50.to_string(),
            baseline.p99.to_string(),
            format!("{:.2}", baseline.p50.relative_to(&baseline.p50)),
            empty(),
            empty(),
        ]);
        let (name, ratio) = ("redis-benchmark, PING", ping.relative_to(&baseline.p50));
        table.push([
            name.to_owned(),
            ping.to_string(),
            empty(),
            format!("{ratio:.2}"),
            empty(),
            empty(),
        ]);
        table
    }
}
