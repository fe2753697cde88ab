//! What one caller waits for, whom nobody accompanies.

use super::contest::{Contest, Entry, Keys};
use super::figures::Figures;
use super::floor::Run;
use super::limits::Limits;
use super::way::Way;
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;

/// A round trip and the script: as much as the usual way, and a tenth for what two clients differ in.
const OF_USUAL: Target = Target::AtMost(1.1);

/// Medians of one caller.
#[derive(Debug, Clone)]
pub struct Idle {
    /// tollgate's.
    pub tollgate: Figures,
    /// The usual way's.
    pub usual: Figures,
    /// Of a `PING`, in microseconds.
    pub ping: Rounds,
}

impl Idle {
    /// Takes them.
    ///
    /// # Errors
    /// An answer that is not the right one.
    pub fn measure(contest: Contest<'_>) -> Outcome<Self> {
        let entry = |way| Entry::plenty(way, 1, Keys::Many, Limits::TokenBucket);
        let (mut tollgate, mut usual) = (Figures::default(), Figures::default());
        let mut ping = Rounds::default();
        let [requests, _] = contest.scale.requests;
        for _ in 0..contest.scale.rounds {
            tollgate.push(&contest.turn(entry(Way::Tollgate))?);
            usual.push(&contest.turn(entry(Way::Multiplexed))?);
            let run = Run {
                connections: 1,
                pipeline: 1,
                requests: requests / 10,
                keys: 1,
                command: &["PING"],
            };
            ping.push(run.take(contest.stage)?.p50);
        }
        Ok(Self { tollgate, usual, ping })
    }

    /// The figures as a table.
    #[must_use]
    pub fn table(&self) -> Table {
        let Self { tollgate, usual, ping } = self;
        let times = format!("× {}", Way::Multiplexed.label());
        let mut table = Table::new(["1 caller", "p50 µs", "p99 µs", &times, "target", ""]);
        let ratio = tollgate.p50.relative_to(&usual.p50);
        table.push([
            Way::Tollgate.label().to_owned(),
            tollgate.p50.to_string(),
            tollgate.p99.to_string(),
            format!("{ratio:.2}"),
            OF_USUAL.to_string(),
            OF_USUAL.verdict(ratio.median()).to_owned(),
        ]);
        let nothing = String::new;
        table.push([
            Way::Multiplexed.label().to_owned(),
            usual.p50.to_string(),
            usual.p99.to_string(),
            format!("{:.2}", usual.p50.relative_to(&usual.p50)),
            nothing(),
            nothing(),
        ]);
        let (name, ratio) = ("redis-benchmark, PING", ping.relative_to(&usual.p50));
        table.push([
            name.to_owned(),
            ping.to_string(),
            nothing(),
            format!("{ratio:.2}"),
            nothing(),
            nothing(),
        ]);
        table
    }
}
