//! The figures of a soak and the checks on them.

use std::fmt;
use std::time::Duration;

use super::REDIS_KILLS;
use super::changes::Done;
use super::counted::{Highest, Store, highest, outage_admissions};
use super::samples::{Samples, Trend};
use super::system::{REDIS_NODES, System};
use super::traffic::Results;

/// Maximum growth of the resident memory of a node.
const MAX_GROWTH: f64 = 0.01;

/// Maximum difference of the numbers of descriptors, for connections of this program.
const MAX_FILES: u64 = 2;

/// The figures of a soak.
#[derive(Debug)]
pub struct Report {
    length: Duration,
    peak: u32,
    requests: u64,
    shed: u64,
    failed: Vec<String>,
    changes: Done,
    memory: Highest,
    redis: Highest,
    /// Admissions of counted clients while Redis was down.
    in_outages: u64,
    /// The node with the memory store first.
    trends: Vec<Trend>,
    /// Panics and errors in the logs.
    panics: usize,
}

/// Which failures count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failures {
    /// All.
    All,
    /// All but growth and the number of kills: a soak of seconds ends before tables have their size, and an outage takes seconds.
    WithoutGrowth,
}

impl Report {
    pub(super) fn new(
        system: &System,
        peak: u32,
        (length, results): (Duration, Vec<Results>),
        samples: &Samples,
        changes: Done,
        segments: &[Duration],
    ) -> Self {
        let mut all = Results::default();
        results.into_iter().for_each(|results| all.add(results));
        Self {
            length,
            peak,
            requests: all.requests,
            shed: all.shed,
            failed: all.failed,
            changes,
            memory: highest(&all.admissions, Store::Memory, segments),
            redis: highest(&all.admissions, Store::Redis, segments),
            in_outages: outage_admissions(&all.admissions),
            trends: samples.trends(),
            panics: system.nodes().map(|node| node.logged(&["panicked"])).sum(),
        }
    }

    /// Returns the checks that failed.
    #[must_use]
    pub fn failures(&self, which: Failures) -> Vec<String> {
        let mut failures = Vec::new();
        let mut check = |is_right: bool, failure: String| {
            if !is_right {
                failures.push(failure);
            }
        };
        let failed = format!("{} requests failed: {:?}", self.failed.len(), self.failed.first());
        check(self.failed.is_empty(), failed);
        for (store, highest) in [("memory", self.memory), ("Redis", self.redis)] {
            let Highest { admitted, bound, exceeded } = highest;
            check(
                exceeded == 0,
                format!("{store}: {exceeded} limits exceeded, {admitted} of {bound}"),
            );
            check(admitted > 0, format!("{store}: no counted client was admitted"));
        }
        check(self.panics == 0, format!("{} panics", self.panics));
        let Done { overrides, policies, reloads, kills, breakers_opened: opened } = self.changes;
        let min_kills = match which {
            Failures::All => REDIS_KILLS.into(),
            Failures::WithoutGrowth => 1,
        };
        check(kills >= min_kills, format!("{kills} kills of Redis, expected {min_kills}"));
        check(
            opened >= kills * REDIS_NODES as u64,
            format!("{kills} kills of Redis opened {opened} breakers"),
        );
        check(self.in_outages > 0, "no counted client was admitted in an outage".to_owned());
        check(overrides > 0, "no override was changed".to_owned());
        check(policies > 0, "no policy was written".to_owned());
        check(reloads > 0, "no policy was loaded".to_owned());
        if which == Failures::All {
            for (node, trend) in self.trends.iter().enumerate() {
                let growth = trend.growth * 100.0;
                check(
                    trend.growth < MAX_GROWTH,
                    format!("node {node}: memory grew by {growth:.2} %"),
                );
                let [begin, end] = trend.files;
                check(
                    end <= begin + MAX_FILES,
                    format!("node {node}: {begin} descriptors, then {end}"),
                );
            }
        }
        failures
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { overrides, policies, reloads, kills, breakers_opened } = self.changes;
        let seconds = self.length.as_secs_f64();
        writeln!(f, "| figure | measured |\n|---|---|")?;
        writeln!(f, "| time under load | {seconds:.0} s |")?;
        writeln!(
            f,
            "| requests; peak of this machine | {}; {} per second |",
            self.requests, self.peak
        )?;
        writeln!(f, "| failed; shed | {}; {} |", self.failed.len(), self.shed)?;
        writeln!(
            f,
            "| kills of Redis; breakers opened; counted admissions in outages | {kills}; {breakers_opened}; {} |",
            self.in_outages
        )?;
        writeln!(
            f,
            "| changes of overrides; policies written; reloads | {overrides}; {policies}; {reloads} |"
        )?;
        for (store, highest) in [("memory", self.memory), ("Redis, by segment", self.redis)] {
            let Highest { admitted, bound, exceeded } = highest;
            writeln!(
                f,
                "| limits exceeded, {store} | {exceeded}; at most {admitted} of {bound} |"
            )?;
        }
        for (number, trend) in self.trends.iter().enumerate() {
            let (mib, growth) = (trend.rss / (1 << 20), trend.growth * 100.0);
            let store = if number == 0 { "memory" } else { "Redis" };
            let [begin, end] = trend.files;
            writeln!(
                f,
                "| node {number} ({store}): memory; growth; descriptors | {mib} MiB; {growth:+.2} %; {begin} to {end} |"
            )?;
        }
        Ok(())
    }
}
