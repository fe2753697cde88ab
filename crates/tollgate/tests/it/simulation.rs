//! Simulates a fleet and its shared store in virtual time, with faults. `tollgate_testkit::simulator` lists what is
//! checked.
//!
//! `TOLLGATE_SEEDS` sets the number of simulated hours. `TOLLGATE_SEED` replays one of them and prints its timeline.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tollgate_testkit::simulator::{Figures, replay, simulate};

/// Default number of simulated hours.
const SEEDS: u64 = 3000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

#[test]
fn bounds_hold_and_everything_recovers_under_faults() {
    if let Some(seed) = number("TOLLGATE_SEED") {
        match replay(seed) {
            Ok(timeline) => println!("{}", timeline.join("\n")),
            Err(failure) => panic!("{failure}"),
        }
        return;
    }
    let figures = simulate_all(number("TOLLGATE_SEEDS").unwrap_or(SEEDS));
    println!("{figures:?}");
    // Every checked event must have happened.
    let Figures {
        decisions,
        degraded,
        shadow_decisions,
        refunds,
        uncertain_refunds,
        losses,
        recoveries,
        probes,
        replays,
        dropped_replays,
        kept_replays,
    } = figures;
    let all = [
        decisions,
        degraded,
        shadow_decisions,
        refunds,
        uncertain_refunds,
        losses,
        recoveries,
        probes,
        replays,
        dropped_replays,
        kept_replays,
    ];
    assert!(all.iter().all(|count| *count > 0), "{figures:?}");
}

/// Simulates on every processor. Panics at the first seed that fails, with the command that replays it.
fn simulate_all(seeds: u64) -> Figures {
    let (next, total) = (AtomicU64::new(0), Mutex::new(Figures::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            match simulate(seed) {
                Ok(figures) => *total.lock().unwrap() += figures,
                Err(failure) => panic!(
                    "{failure}\n\
                     replay it: TOLLGATE_SEED={seed} cargo test -p tollgate --test it simulation -- --nocapture"
                ),
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    total.into_inner().unwrap()
}

#[test]
fn replay_is_deterministic() {
    for seed in [3, 14, 159] {
        assert_eq!(replay(seed).unwrap(), replay(seed).unwrap());
    }
}
