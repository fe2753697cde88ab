//! Simulates large fleets that share a store, on virtual time: how many calls they make, how much of the limits they use,
//! and how long decisions take.
//!
//! Each node is a real [`FallbackStore`](tollgate::FallbackStore) over a real [`LeaseTable`](tollgate::lease::LeaseTable);
//! the store is a real [`MemoryStore`](tollgate::MemoryStore), which decides as Redis does. Simulated are the time, the
//! network, the queue in front of each server, the batching and the refusal cache of `tollgate-redis`, and the clients.
//! Every admission is checked against the limit of its key.
//!
//! A seed fixes the requests, their times and all latencies. The hashes of the lease tables are random in every run, so
//! figures of the same seed differ slightly.
//!
//! ```
//! use tollgate_testkit::fleet::{Scenario, simulate};
//!
//! let fleet = Scenario { nodes: 3, keys: 20, rate: 5e3, ..Scenario::steady(7) };
//! let figures = simulate(fleet);
//! assert_eq!(figures.violations, 0);
//! assert!(figures.requests_per_decision < 0.5);
//! ```

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures of simulations"
)]

mod demand;
mod faults;
mod figures;
mod key_bucket;
mod lane;
mod latency_histogram;
mod network;
mod node;
mod node_store;
mod popularity;
mod refusals;
mod request;
mod run;
mod scenario;
mod scenarios;
mod tally;
mod tickets;
mod world;

pub use demand::{Arrival, Demand};
pub use figures::{Figures, HotKeys, LeaseFigures, RankFigures, Sources, StoreFigures};
pub use scenario::{Fault, Flash, Scenario, StoreModel};
pub use scenarios::SCENARIOS;

/// Simulates a fleet.
///
/// # Panics
/// If the scenario is not valid.
#[must_use]
pub fn simulate(scenario: Scenario) -> Figures {
    let world = world::World::new(scenario);
    run::Simulation::new(&world).run()
}
