//! The requests of the hour, drawn from the seed: mostly in bursts, and often just after a fault.

use tollgate::Distributed;

use super::request::{Action, KeyCost, Request};
use super::scenario::{Maintenance, Refunds, SECOND, Scenario};
use super::schedule::{Fault, HOUR};
use crate::random::Random;
use crate::spec::Kind;

/// A caller with one request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Random number that selects one of the live nodes.
    pub(super) node: u64,
    pub(super) request: Request,
    /// Time after which the caller drops its request, in microseconds.
    pub(super) gives_up_after: Option<u64>,
    pub(super) holding: Holding,
}

/// What a caller does with its slots; times in microseconds since the decision.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Holding {
    pub(super) renewed_after: Option<u64>,
    /// `None` for a holder that crashed.
    pub(super) released_after: Option<u64>,
}

/// Draws the callers of an hour, with their times since its start, unordered.
pub(super) fn draw(
    scenario: &Scenario,
    faults: &[(u64, Fault)],
    random: &mut Random,
) -> Vec<(u64, Caller)> {
    let (mut callers, mut permits) = (Vec::new(), 0);
    for _ in 0..random.within(10, 40) {
        let mut at = match random.pick(faults) {
            Some((fault_at, _)) if !random.one_in(3) => fault_at + random.magnitude(3 * SECOND),
            _ => random.within(0, HOUR - 1),
        };
        let gap = *random.pick(&[1, 1000, 100_000, 2 * SECOND]).unwrap_or(&1);
        for _ in 0..random.magnitude(16) {
            permits += 1;
            callers.push((at.min(HOUR - 1), draw_caller(scenario, random, permits)));
            at += random.within(0, gap);
        }
    }
    callers
}

fn draw_caller(scenario: &Scenario, random: &mut Random, number: u64) -> Caller {
    let last_key = scenario.keys.len() as u64 - 1;
    let key = usize::try_from(random.within(0, last_key)).unwrap_or(0);
    let action = draw_action(scenario, random, key);
    let mut costs = vec![draw_cost(scenario, random, key)];
    let second_key = usize::try_from(random.within(0, last_key)).unwrap_or(0);
    if action == Action::Take && second_key != key && can_combine(scenario, key, second_key) {
        costs.push(draw_cost(scenario, random, second_key));
    }
    let has_slots =
        costs.iter().any(|cost| scenario.specs[cost.key].algorithm == Kind::Concurrency);
    let is_held = action == Action::Take && has_slots && !random.one_in(5);
    let ttl = scenario.specs.iter().map(|spec| spec.window_us).max().unwrap_or(1).max(1);
    let after = |random: &mut Random| (!random.one_in(3)).then(|| random.magnitude(ttl * 3 / 2));
    let holding = Holding { renewed_after: after(random), released_after: after(random) };
    Caller {
        node: random.draw(),
        request: Request { action, costs, permit: is_held.then_some(number) },
        gives_up_after: random.one_in(30).then(|| random.within(0, 150_000)),
        holding,
    }
}

fn draw_action(scenario: &Scenario, random: &mut Random, key: usize) -> Action {
    match random.within(0, 19) {
        0 | 1 => Action::Peek,
        2 | 3 if scenario.keys[key].refunds == Refunds::Sometimes => Action::Refund,
        4 if scenario.maintenance == Maintenance::EverySecond => Action::Debit {
            age_us: random.magnitude(scenario.specs[key].window_us.max(SECOND)) - 1,
        },
        _ => Action::Take,
    }
}

fn draw_cost(scenario: &Scenario, random: &mut Random, key: usize) -> KeyCost {
    let capacity = scenario.specs[key].capacity();
    let cost = match random.within(0, 9) {
        0 => capacity,
        1 => random.magnitude(capacity),
        2 => random.within(0, 2),
        3 if random.one_in(5) => capacity + 1,
        _ => 1,
    };
    KeyCost { key, cost }
}

/// Returns true if two keys may be in one plan. A shadow take is called after the rest of its plan is decided; it
/// comes alone here, so that decisions and replies have the same order.
fn can_combine(scenario: &Scenario, key: usize, second_key: usize) -> bool {
    [key, second_key].iter().all(|key| scenario.distributed(*key) != Distributed::Shadow)
}
