//! Simulates nodes that lease from one store, with faults: no limit is exceeded, and little of it is wasted.
//! `tollgate_testkit::lease_simulator` lists the faults and what is checked.
//!
//! `TOLLGATE_SEEDS` sets the number of simulations, `TOLLGATE_SEED` runs one of them.

use tollgate_testkit::lease_simulator::{Demand, LeaseFigures, simulate, utilization};
use tollgate_testkit::spec::{Align, Kind, LimitSpec};

/// Default number of simulations, each of a few minutes.
const SEEDS: u64 = 400;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

#[test]
fn leasing_nodes_stay_within_every_limit_under_faults() {
    let seeds = match number("TOLLGATE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TOLLGATE_SEEDS").unwrap_or(SEEDS),
    };
    let (mut figures, is_alone) = (LeaseFigures::default(), seeds.end - seeds.start == 1);
    for seed in seeds {
        figures += simulate(seed).unwrap_or_else(|reason| panic!("TOLLGATE_SEED={seed}: {reason}"));
    }
    println!("{figures:?}");
    // Every simulated event must have happened.
    assert!(is_alone || figures.all().iter().all(|count| *count > 0), "{figures:?}");
}

/// Limits of each algorithm with this rate per second.
fn limits(rate: u64) -> [LimitSpec; 6] {
    let minute = 60 * 1_000_000;
    [
        LimitSpec::new(Kind::TokenBucket, rate * 60, minute).with_burst(rate * 8),
        LimitSpec::new(Kind::TokenBucket, rate, 1_000_000),
        LimitSpec::new(Kind::SlidingWindow, rate * 60, minute),
        LimitSpec::new(Kind::SlidingCounter, rate * 60, minute),
        LimitSpec::new(Kind::FixedWindow, rate * 60, minute),
        LimitSpec::calendar(rate * 60, Align::Minute, "UTC"),
    ]
}

/// Returns the admissions per thousand that the limit and the demand allow.
fn used_permille(spec: &LimitSpec, rate: u64, demand: Demand, demand_permille: u64) -> u64 {
    let used = utilization(&spec.clone().leased(), rate, demand, demand_permille).unwrap();
    let permille = used.admitted * 1000 / used.possible;
    println!(
        "{demand:?} {demand_permille:>4}: {permille:>4} permille, {:>5} calls for {:>5} requests, {:?}",
        used.calls, used.requests, spec.algorithm,
    );
    permille
}

#[test]
fn steady_demand_uses_the_limit() {
    for spec in limits(200) {
        for demand_permille in [900, 2000] {
            let permille = used_permille(&spec, 200, Demand::Steady, demand_permille);
            assert!(permille >= 990, "{permille} permille of {spec:?}");
        }
    }
}

#[test]
fn moving_demand_uses_the_limit() {
    for spec in limits(200) {
        for demand_permille in [900, 2000] {
            let permille = used_permille(&spec, 200, Demand::Moving, demand_permille);
            assert!(permille >= 950, "{permille} permille of {spec:?}");
        }
    }
}
