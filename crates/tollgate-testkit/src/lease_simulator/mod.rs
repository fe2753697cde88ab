//! Simulates nodes that lease from one store, in virtual time: the real lease table and the real memory store.
//!
//! [`simulate`] draws limits, traffic and faults from a seed: crashed and paused nodes, suspended machines, steps of wall
//! clocks, lost calls and replies, outages of the store, resets and changed limits. Every admission of every node is
//! checked against the bound of each limit, see [`AdmissionBound`](crate::admission_bound::AdmissionBound):
//!
//! - A reset starts the bound again. What a node spends before it receives the event is not counted.
//! - A changed limit is checked from when the last node has loaded it, and one second for the leases of the old limit.
//!
//! A machine is not suspended while its wall clock steps back: together they can hide time from both clocks.
//!
//! [`utilization`] measures without faults how much of a limit the nodes use.

mod faults;
mod fleet;
mod key;
mod node;
mod utilization;

use std::num::NonZeroU32;
use std::ops::AddAssign;

use tollgate::LeaseSize;

use crate::random::Random;
use crate::spec::{Align, Kind, LimitSpec};
use fleet::{Event, Fleet};
use key::Key;

pub use utilization::{Demand, Utilization, utilization};

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

/// Number of scenes in a simulation, each longer than the windows of the limits.
const SCENES: u64 = 6;

/// Numbers of events, to show that each kind happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are descriptive")]
pub struct LeaseFigures {
    pub arrivals: u64,
    pub leased_decisions: u64,
    pub store_decisions: u64,
    pub refused: u64,
    pub grants: u64,
    pub dropped: u64,
    pub lost_grants: u64,
    pub crashes: u64,
    pub pauses: u64,
    pub suspends: u64,
    pub clock_steps: u64,
    pub outages: u64,
    pub resets: u64,
    pub limit_changes: u64,
}

impl LeaseFigures {
    /// All figures.
    #[must_use]
    pub fn all(&self) -> [u64; 14] {
        [
            self.arrivals,
            self.leased_decisions,
            self.store_decisions,
            self.refused,
            self.grants,
            self.dropped,
            self.lost_grants,
            self.crashes,
            self.pauses,
            self.suspends,
            self.clock_steps,
            self.outages,
            self.resets,
            self.limit_changes,
        ]
    }
}

impl AddAssign for LeaseFigures {
    fn add_assign(&mut self, other: Self) {
        self.arrivals += other.arrivals;
        self.leased_decisions += other.leased_decisions;
        self.store_decisions += other.store_decisions;
        self.refused += other.refused;
        self.grants += other.grants;
        self.dropped += other.dropped;
        self.lost_grants += other.lost_grants;
        self.crashes += other.crashes;
        self.pauses += other.pauses;
        self.suspends += other.suspends;
        self.clock_steps += other.clock_steps;
        self.outages += other.outages;
        self.resets += other.resets;
        self.limit_changes += other.limit_changes;
    }
}

/// Simulates a few minutes of a fleet that is drawn from a seed.
///
/// # Errors
/// A limit was exceeded.
pub fn simulate(seed: u64) -> Result<LeaseFigures, String> {
    let mut random = Random::new(seed);
    let keys: Vec<Key> = (0..random.within(1, 2))
        .map(|number| {
            let size = draw_size(&mut random);
            Key::new(number, [draw_limit(&mut random), draw_limit(&mut random)], size)
        })
        .collect();
    let nodes = random.within(1, 4);
    let mut fleet = Fleet::new(random, keys, nodes);
    fleet.loss = 20;
    let mut at = fleet.now;
    for _ in 0..SCENES {
        at += draw_scene(&mut fleet, at);
    }
    faults::draw_limit_change(&mut fleet, at);
    fleet.run().map_err(|reason| format!("seed {seed}: {reason}"))?;
    Ok(fleet.figures())
}

/// Draws requests that let all nodes lease, faults, and more requests than the limit allows: when the leases are about to
/// end, when the faults are over, or when the window has passed. Returns the time until the limits are full again.
fn draw_scene(fleet: &mut Fleet, begin: u64) -> u64 {
    let (hold, window) = (fleet.hold(), fleet.window());
    let requests = fleet.random.magnitude(30);
    for node in 0..fleet.nodes.len() {
        draw_burst(fleet, begin, &[node], requests);
    }
    let fault_at = begin + fleet.random.magnitude(hold);
    let faults_end = faults::draw(fleet, fault_at);
    let after = match fleet.random.within(0, 2) {
        0 => begin + hold - hold / 64,
        1 => fault_at + fleet.random.magnitude(hold / 16),
        _ => faults_end,
    };
    let nodes: Vec<usize> = (0..fleet.nodes.len()).collect();
    let requests = fleet.capacity() * 5 / 4;
    draw_burst(fleet, after, &nodes, requests);
    let late = begin + window + fleet.random.magnitude(hold);
    draw_burst(fleet, late, &nodes, requests);
    late.max(faults_end) - begin + 2 * window
}

fn draw_burst(fleet: &mut Fleet, mut at: u64, nodes: &[usize], requests: u64) {
    let gap = fleet.random.magnitude(100);
    for _ in 0..requests {
        let node = *fleet.random.pick(nodes).unwrap_or(&0);
        let cost = if fleet.random.one_in(8) { fleet.random.magnitude(5) } else { 1 };
        fleet.plan(at, Event::Arrival { node, cost });
        at += fleet.random.within(0, gap);
    }
}

fn draw_size(random: &mut Random) -> LeaseSize {
    match u32::try_from(random.within(0, 40)).ok().and_then(NonZeroU32::new) {
        Some(size) if random.one_in(2) => LeaseSize::Fixed(size),
        _ => LeaseSize::Auto,
    }
}

/// Draws a spec whose limit can be leased.
fn draw_limit(random: &mut Random) -> LimitSpec {
    let kinds = [
        Kind::TokenBucket,
        Kind::SlidingWindow,
        Kind::SlidingCounter,
        Kind::FixedWindow,
        Kind::CalendarWindow,
    ];
    let kind = *random.pick(&kinds).unwrap_or(&Kind::TokenBucket);
    loop {
        let count = random.within(16, 200);
        let window = *random.pick(&[2, 10, 30]).unwrap_or(&10) * SECOND;
        let spec = match kind {
            Kind::CalendarWindow => {
                let align = *random.pick(&[Align::Second, Align::Minute]).unwrap_or(&Align::Second);
                LimitSpec::calendar(count, align, "UTC")
            }
            Kind::TokenBucket => {
                LimitSpec::new(kind, count, window).with_burst(random.within(16, 400))
            }
            _ => LimitSpec::new(kind, count, window),
        };
        let limit = spec.clone().leased().build();
        if limit.is_ok_and(|limit| limit.lease_hold().is_some()) {
            return spec.leased();
        }
    }
}
