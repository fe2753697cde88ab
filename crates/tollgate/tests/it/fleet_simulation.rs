//! Simulates fleets that share a store: no limit is exceeded, limits are used, and few decisions need a call.
//! `tollgate_testkit::fleet` describes the simulator, `scripts/simulate-fleet` runs larger fleets.

use tollgate_testkit::fleet::{Fault, Figures, Scenario, simulate};

/// A fleet that is small enough for a test: what each node sees is as in a large fleet.
fn small(name: &str) -> Scenario {
    let scenario = Scenario::named(name, 5).unwrap();
    Scenario { warm_up: 1_000_000, length: 2_000_000, ..scenario }
}

fn simulate_within_limits(scenario: Scenario) -> Figures {
    let figures = simulate(scenario);
    assert_eq!((figures.violations, figures.share_violations), (0, 0), "{figures:?}");
    assert!(figures.checked > figures.decisions / 4, "{figures:?}");
    figures
}

#[test]
fn busy_keys_need_one_call_in_a_hundred_decisions() {
    // Leases begin short and small, so the first seconds need more calls.
    let warm_up = 2_500_000;
    let fleet = Scenario { nodes: 2, keys: 2000, rate: 2.4e5, warm_up, ..small("hot") };
    let leased = simulate_within_limits(fleet.clone());
    assert!(leased.hot_tenth.requests_per_decision <= 0.01, "{leased:?}");
    assert!(leased.wrongly_refused * 1000 <= leased.below_limit, "{leased:?}");
    let not_leased = simulate_within_limits(Scenario { lease: None, rate: 2e4, ..fleet });
    assert!(not_leased.hot_tenth.requests_per_decision > 0.9, "{not_leased:?}");
}

#[test]
fn exceeded_limits_are_used_and_shared_fairly() {
    let fleet = Scenario { nodes: 20, spread: 20, keys: 4, rate: 4e4, ..small("exceeded") };
    let fleet = Scenario { limit_rate: 5000, limit_burst: 10_000, warm_up: 3_000_000, ..fleet };
    let figures = simulate_within_limits(fleet);
    assert_eq!(figures.exceeded_limits, 4, "{figures:?}");
    assert!(figures.used_part >= 0.95, "{figures:?}");
    assert!(figures.fairness >= 0.95, "{figures:?}");
}

#[test]
fn limits_hold_while_the_store_fails_over_and_nodes_restart() {
    let second = 1_000_000;
    let restart = |node: u32| {
        (2 * second + u64::from(node) * second / 10, Fault::Restart(usize::try_from(node).unwrap()))
    };
    let faults = [
        ("failover", vec![(2 * second, Fault::StoreLost), (4 * second, Fault::StoreFound)]),
        ("partition", vec![(2 * second, Fault::Partition(300)), (4 * second, Fault::Heal)]),
        ("rolling", (0..10).map(restart).collect()),
    ];
    for (name, faults) in faults {
        let fleet = Scenario { nodes: 10, keys: 50, rate: 3e4, spread: 10, ..small("steady") };
        let figures = simulate_within_limits(Scenario { length: 6 * second, faults, ..fleet });
        assert!(figures.sources.lease > 0, "{name}: {figures:?}");
        assert_eq!(figures.sources.local > 0, name != "rolling", "{name}: {figures:?}");
    }
}
