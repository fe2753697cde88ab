//! What is simulated: the fleet, its limit, its demand, its store, and the faults.

use std::num::NonZeroU32;

use serde::Serialize;
use tollgate::{LeaseSize, Limit, Quota};

/// Microseconds in a second.
pub(super) const SECOND: u64 = 1_000_000;

/// A simulation of a fleet. Times are microseconds, rates are per second.
#[derive(Debug, Clone, Serialize)]
pub struct Scenario {
    /// Its name, for reports.
    pub name: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of keys. All have the same limit.
    pub keys: u32,
    /// Rate of the token bucket of each key.
    pub limit_rate: u64,
    /// Burst of the token bucket of each key.
    pub limit_burst: u64,
    /// Leases: `None` for off, 0 for auto, else the size.
    pub lease: Option<u32>,
    /// Requests of the whole fleet.
    pub rate: f64,
    /// Exponent of Zipf's law.
    pub zipf: f64,
    /// Number of nodes that receive the requests of one key.
    pub spread: usize,
    /// Time before the measurement.
    pub warm_up: u64,
    /// Time of the measurement.
    pub length: u64,
    /// Round trip to the store.
    pub latency: u64,
    /// Thousandths of the nodes in another region, and their round trip.
    pub far: (usize, u64),
    /// Time limit of a call.
    pub timeout: u64,
    /// Time between moves of all hot spots to other keys; 0: never.
    pub move_every: u64,
    /// Keys with these ranks get this many times their demand in the middle third of the measurement.
    pub flash: Option<Flash>,
    /// The servers of the store.
    pub store: StoreModel,
    /// Faults, by time since the start.
    pub faults: Vec<(u64, Fault)>,
}

/// A flash crowd.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Flash {
    /// The first rank and the number of ranks.
    pub ranks: (u32, u32),
    /// How many times the demand is multiplied by.
    pub factor: f64,
}

/// The servers of the store: a queue each, with a constant service time.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StoreModel {
    /// Number of primaries.
    pub servers: usize,
    /// CPU time of a call, in nanoseconds.
    pub call_ns: u64,
    /// CPU time of each plan in a call, in nanoseconds.
    pub plan_ns: u64,
    /// CPU time of a node report, in nanoseconds.
    pub report_ns: u64,
}

/// A fault.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum Fault {
    /// All servers stop replying, and lose the calls that they have not replied to.
    StoreLost,
    /// The new primaries reply; they have all data. Nodes subscribe again within a second.
    StoreFound,
    /// This many thousandths of the nodes lose their links to the store.
    Partition(usize),
    /// All links work again.
    Heal,
    /// The process of this node ends, and a new one replaces it immediately.
    Restart(usize),
}

impl Scenario {
    /// A fleet without faults whose limit is reached by the hottest keys.
    #[must_use]
    pub fn steady(seed: u64) -> Self {
        Self {
            name: "steady".to_owned(),
            seed,
            nodes: 1000,
            keys: 1_000_000,
            limit_rate: 1000,
            limit_burst: 2000,
            lease: Some(0),
            rate: 1e6,
            zipf: 1.0,
            spread: 1,
            warm_up: 5 * SECOND,
            length: 10 * SECOND,
            latency: 200,
            far: (0, 0),
            timeout: SECOND / 10,
            move_every: 0,
            flash: None,
            store: StoreModel::measured(16),
            faults: Vec::new(),
        }
    }

    /// The limit of each key.
    ///
    /// # Panics
    /// If the rate or the burst is not valid.
    #[must_use]
    pub fn limit(&self) -> Limit {
        let size = match self.lease {
            None => LeaseSize::Off,
            Some(size) => NonZeroU32::new(size).map_or(LeaseSize::Auto, LeaseSize::Fixed),
        };
        let quota = Quota::per_second(self.limit_rate).burst(self.limit_burst);
        let limit = Limit::token_bucket(quota).expect("a valid quota");
        limit.with_lease(size).named("limit").expect("a valid name")
    }

    /// Returns the round trip of a node.
    pub(super) fn latency_of(&self, node: usize) -> u64 {
        let (far, latency) = self.far;
        if node * 1000 < far * self.nodes { latency } else { self.latency }
    }

    pub(super) fn end(&self) -> u64 {
        self.warm_up + self.length
    }
}

impl StoreModel {
    /// CPU times of Redis on the machine of `docs/BENCHMARKS.md`, see `docs/SCALE.md`.
    #[must_use]
    pub const fn measured(servers: usize) -> Self {
        Self { servers, call_ns: 6_000, plan_ns: 4_200, report_ns: 40_000 }
    }
}
