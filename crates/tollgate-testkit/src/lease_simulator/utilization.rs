//! How much of a limit a fleet uses.

use tollgate::LeaseSize;

use super::SECOND;
use super::fleet::{Event, Fleet};
use super::key::Key;
use crate::random::Random;
use crate::spec::LimitSpec;

/// Number of nodes.
const NODES: u64 = 4;

/// Time that is measured, in seconds, after the time until the burst is used up.
const SECONDS: u64 = 60;

/// Which nodes receive requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// All nodes, at any time.
    Steady,
    /// One node, and another one every second.
    Moving,
}

/// What a fleet used of a limit in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utilization {
    /// Admitted requests.
    pub admitted: u64,
    /// The number of requests, or less if the limit allows less.
    pub possible: u64,
    /// Calls to the store.
    pub calls: u64,
    /// Requests.
    pub requests: u64,
}

/// Measures how much of a limit of `rate` per second is used, if `demand_permille` of it is requested.
///
/// # Errors
/// The limit was exceeded.
pub fn utilization(
    spec: &LimitSpec,
    rate: u64,
    demand: Demand,
    demand_permille: u64,
) -> Result<Utilization, String> {
    let size = if spec.leased { LeaseSize::Auto } else { LeaseSize::Off };
    let key = Key::new(0, [spec.clone(), spec.clone()], size);
    let mut fleet = Fleet::new(Random::new(7), vec![key], NODES);
    let start = fleet.now.next_multiple_of(60 * SECOND);
    // A token bucket admits its burst first.
    let warm_up = if demand_permille > 1000 { 60 } else { 5 };
    let requests = (warm_up + SECONDS) * rate * demand_permille / 1000;
    let gap = SECOND * 1000 / (rate * demand_permille);
    for number in 0..requests {
        let at = start + number * gap;
        let node = match demand {
            Demand::Steady => number % NODES,
            // Not the next one: nodes must not know where the demand moves.
            Demand::Moving => (at / SECOND).wrapping_mul(0x9E37_79B9) >> 7,
        };
        let jitter = fleet.random.within(0, gap);
        fleet.plan(at + jitter, Event::Arrival { node: fleet.node(node), cost: 1 });
    }
    fleet.run_until(start + warm_up * SECOND)?;
    let (admitted, calls) = (fleet.admitted, fleet.calls);
    fleet.run()?;
    Ok(Utilization {
        admitted: fleet.admitted - admitted,
        possible: SECONDS * rate * demand_permille.min(1000) / 1000,
        calls: fleet.calls - calls,
        requests: SECONDS * rate * demand_permille / 1000,
    })
}
