//! Named scenarios.

use super::scenario::{Fault, Flash, SECOND, Scenario, StoreModel};

/// A named change of the steady scenario.
type Change = fn(&mut Scenario);

/// The names of all scenarios, and what they simulate.
pub const SCENARIOS: [(&str, &str); 12] = [
    ("steady", "Zipf keys, the requests of a key arrive at one node"),
    ("spread", "as steady, but a key's requests arrive at all nodes"),
    ("few-nodes", "as steady, but a key's requests arrive at eight nodes"),
    ("hot", "80 million decisions per second on 1,000 nodes, a fortieth of it"),
    ("exceeded", "20 keys on all nodes, each with twice the demand that its limit allows"),
    ("moving", "every second, all hot spots move to other keys"),
    ("flash", "ten keys get 15 times their demand for a third of the time"),
    ("failover", "the store is lost for two seconds"),
    ("partition", "a tenth of the nodes has no link to the store for three seconds"),
    ("rolling", "100 nodes are replaced one after the other"),
    ("lan", "a store 2 ms away"),
    ("far", "half of the nodes are 100 ms away from the store"),
];

impl Scenario {
    /// Returns a scenario of [`SCENARIOS`]; `None` if there is none of this name.
    #[must_use]
    pub fn named(name: &str, seed: u64) -> Option<Self> {
        let mut scenario = Self { name: name.to_owned(), ..Self::steady(seed) };
        change(name)?(&mut scenario);
        Some(scenario)
    }
}

fn change(name: &str) -> Option<Change> {
    Some(match name {
        "steady" => |_| {},
        "spread" => |scenario| scenario.spread = scenario.nodes,
        "few-nodes" => |scenario| scenario.spread = 8,
        "hot" => hot,
        "exceeded" => exceeded,
        "moving" => |scenario| scenario.move_every = SECOND,
        "flash" => |scenario| scenario.flash = Some(Flash { ranks: (10, 10), factor: 15.0 }),
        "failover" => |scenario| {
            let lost = scenario.warm_up + scenario.length / 3;
            scenario.faults =
                vec![(lost, Fault::StoreLost), (lost + 2 * SECOND, Fault::StoreFound)];
        },
        "partition" => |scenario| {
            let cut = scenario.warm_up + scenario.length / 3;
            scenario.faults = vec![(cut, Fault::Partition(100)), (cut + 3 * SECOND, Fault::Heal)];
        },
        "rolling" => rolling,
        "lan" => |scenario| scenario.latency = 2000,
        "far" => |scenario| {
            scenario.far = (500, SECOND / 10);
            scenario.timeout = SECOND / 2;
        },
        _ => return None,
    })
}

/// A fortieth of a fleet of 1,000 nodes with 1,000,000 keys and 80,000,000 decisions per second: what a node sees is the
/// same. The limit is long enough for the longest hold, and the bursts of the hottest keys end before the measurement.
fn hot(scenario: &mut Scenario) {
    (scenario.nodes, scenario.keys, scenario.rate) = (25, 25_000, 2e6);
    (scenario.limit_rate, scenario.limit_burst) = (10_000, 80_000);
    scenario.store = StoreModel::measured(1);
    (scenario.warm_up, scenario.length) = (15 * SECOND, 10 * SECOND);
}

fn exceeded(scenario: &mut Scenario) {
    (scenario.keys, scenario.zipf, scenario.spread) = (20, 0.0, scenario.nodes);
    (scenario.limit_rate, scenario.limit_burst) = (25_000, 50_000);
}

fn rolling(scenario: &mut Scenario) {
    let restarts = 100.min(scenario.nodes) as u64;
    let at = |node: u64| scenario.warm_up + scenario.length * node / restarts;
    scenario.faults = (0..restarts).map(|node| (at(node), Fault::Restart(node as usize))).collect();
}
