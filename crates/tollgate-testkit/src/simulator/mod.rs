//! An hour of a fleet in virtual time, drawn from one number: many nodes with the real decision code, one store
//! that fails in every way, and a judge who computes everything once more.
//!
//! What is judged, at every step:
//!
//! 1. **The store is exact.** What runs in it is answered as the oracle answers: takes, refunds, debits that
//!    nodes tell later, slots, also when its clock steps. Where nothing goes wrong that is every answer.
//! 2. **A node alone is exact**: it answers as the oracle does for its share, ⌈L ÷ N⌉ of the N it knows of.
//!    Over any window nodes alone let pass at most the sum of their shares, and the store at most L and L more
//!    for each time that it lost its data or its clock stepped: together L + N·⌈L ÷ N⌉ however often it fails.
//!    Of a bucket that is burst and refill over any time; of a window that opens at its first take two windows,
//!    and one more for each debit of the past; of slots those in use at any moment.
//! 3. **Each debt is told once**: when a node asks the store again it has told what it let pass and still
//!    matters, spending by spending, with the right age; what was not heard is not told twice. From then on 1.
//!    is the bound.
//! 4. **Nothing else is told**, so that an hour later, after one refill without traffic, everyone has all of
//!    every limit: in the store, and on every node when the store is lost again.
//! 5. **Answers say what they are**: degraded if and only if the store did not decide; `deny` lets nothing
//!    pass, `allow` refuses nothing.
//! 6. **A lost store is left alone**: the breaker opens at exactly its threshold of failures without an answer
//!    between; then only probes go out, one a second at most (and one more when a node wakes that stood
//!    still); the node asks again within two seconds of the store's return.
//! 7. **What is not in the store does not depend on it**: limits that are `off` or `shadow` are decided as the
//!    oracle decides for each node, whatever happens.

mod check;
mod clockwork;
mod fleet;
mod network;
mod request;
mod run;
mod schedule;
mod setting;
mod traffic;
mod world;

use std::fmt;
use std::ops::AddAssign;

use run::Simulation;

/// What happened, to see that anything did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Figures {
    pub decided: u64,
    pub degraded: u64,
    pub beside: u64,
    pub given_back: u64,
    pub lost: u64,
    pub restored: u64,
    pub probes: u64,
    pub told: u64,
    pub untold: u64,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.decided += other.decided;
        self.degraded += other.degraded;
        self.beside += other.beside;
        self.given_back += other.given_back;
        self.lost += other.lost;
        self.restored += other.restored;
        self.probes += other.probes;
        self.told += other.told;
        self.untold += other.untold;
    }
}

/// A seed under which something does not hold.
#[derive(Debug)]
pub struct Failure {
    seed: u64,
    why: String,
    timeline: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.timeline {
            writeln!(f, "{line}")?;
        }
        write!(f, "seed {}: {}", self.seed, self.why)
    }
}

/// Simulates the hour of a seed.
///
/// # Errors
/// What does not hold first, with all that led to it.
pub fn simulate(seed: u64) -> Result<Figures, Failure> {
    let judged = Simulation::new(seed, None).judge();
    // Once more, writing down what happens.
    judged.or_else(|_| Simulation::new(seed, Some(Vec::new())).judge())
}

/// The same, and all that happened.
///
/// # Errors
/// As [`simulate`].
pub fn replay(seed: u64) -> Result<Vec<String>, Failure> {
    let mut simulation = Simulation::new(seed, Some(Vec::new()));
    simulation.run();
    simulation.judged()?;
    Ok(simulation.timeline())
}
