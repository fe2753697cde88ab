//! Simulates one hour of a fleet in virtual time, drawn from a seed: nodes with the real decision code, one shared
//! store with every kind of fault, and a checker that computes every result again with the oracle.
//!
//! Checked at every step:
//!
//! 1. **The shared store is exact.** Every call that runs in it gets the oracle's answer: takes, refunds, replayed
//!    debits, slots, also after a step of its clock.
//! 2. **A node without the store is exact**: it answers as the oracle does for its share, ⌈L ÷ N⌉ of the N nodes it
//!    knows. Over any window the nodes admit at most the sum of their shares, and the store at most L, and L more
//!    for each loss of data and each clock step: together L + N·⌈L ÷ N⌉, for any number of outages. For a token
//!    bucket the bound is burst plus refill over any time; for a fixed window two windows, and one more for each
//!    debit with an age; for concurrency the slots in use at any moment. A refund adds its amount where it is
//!    credited: in the store if it ran there, on the node if it surely did not run in the store, never on both.
//! 3. **Every admission of an outage is replayed once**: before a node calls the store again it has replayed all
//!    admissions that still count, one by one, with the right age. A debit that may have run is not resent; one that
//!    surely did not run is. From then on 1. is the bound.
//! 4. **Nothing else is replayed**: after the hour and one refill without traffic every limit is full, in the
//!    store and, when the store is lost again, on every node.
//! 5. **Decisions are marked**: degraded if and only if the store did not decide. `deny` admits nothing, `allow`
//!    refuses nothing.
//! 6. **Nodes do not call a lost store**: the breaker opens at exactly its threshold of consecutive failures. Then
//!    only probes are sent, at most one per second (one more when a paused node resumes). A node calls the store
//!    again within two seconds of its return.
//! 7. **Limits outside the store do not depend on it**: limits with `off` or `shadow` are decided as the oracle
//!    decides for each node, whatever the faults.

mod check;
mod network;
mod node;
mod request;
mod run;
mod scenario;
mod schedule;
mod traffic;
mod virtual_time;
mod world;

use std::fmt;
use std::ops::AddAssign;

use run::Simulation;

/// Numbers of events in a simulation, to show that each kind happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are descriptive")]
pub struct Figures {
    pub decisions: u64,
    pub degraded: u64,
    pub shadow_decisions: u64,
    pub refunds: u64,
    pub uncertain_refunds: u64,
    pub losses: u64,
    pub recoveries: u64,
    pub probes: u64,
    pub replays: u64,
    pub dropped_replays: u64,
    pub kept_replays: u64,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, figures: Self) {
        self.decisions += figures.decisions;
        self.degraded += figures.degraded;
        self.shadow_decisions += figures.shadow_decisions;
        self.refunds += figures.refunds;
        self.uncertain_refunds += figures.uncertain_refunds;
        self.losses += figures.losses;
        self.recoveries += figures.recoveries;
        self.probes += figures.probes;
        self.replays += figures.replays;
        self.dropped_replays += figures.dropped_replays;
        self.kept_replays += figures.kept_replays;
    }
}

/// A failed check, with its seed and timeline.
#[derive(Debug)]
pub struct Failure {
    seed: u64,
    reason: String,
    timeline: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.timeline {
            writeln!(f, "{line}")?;
        }
        write!(f, "seed {}: {}", self.seed, self.reason)
    }
}

/// Simulates the hour of a seed.
///
/// # Errors
/// The first failed check, with the timeline up to it.
pub fn simulate(seed: u64) -> Result<Figures, Failure> {
    let result = Simulation::new(seed, None).run_and_check();
    // Run a failed seed again, with a timeline.
    result.or_else(|_| Simulation::new(seed, Some(Vec::new())).run_and_check())
}

/// Simulates the hour of a seed, and returns its timeline.
///
/// # Errors
/// As [`simulate`].
pub fn replay(seed: u64) -> Result<Vec<String>, Failure> {
    let mut simulation = Simulation::new(seed, Some(Vec::new()));
    simulation.run();
    simulation.result()?;
    Ok(simulation.timeline())
}
