//! A fleet and its store in virtual time, whatever goes wrong: `tollgate_testkit::simulator` says what is held.
//!
//! `TOLLGATE_SEEDS` asks for more hours than the usual, `TOLLGATE_SEED` for one of them with all that happens in
//! it.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tollgate_testkit::simulator::{Figures, replay, simulate};

/// As many hours, one after the other.
const SEEDS: u64 = 3000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

#[test]
fn whatever_goes_wrong_bounds_hold_and_all_comes_back() {
    if let Some(seed) = number("TOLLGATE_SEED") {
        match replay(seed) {
            Ok(timeline) => println!("{}", timeline.join("\n")),
            Err(failure) => panic!("{failure}"),
        }
        return;
    }
    let figures = simulate_all(number("TOLLGATE_SEEDS").unwrap_or(SEEDS));
    println!("{figures:?}");
    // That everything happened which is held to anything.
    let Figures { decided, degraded, beside, given_back, lost, restored, probes, told, untold } =
        figures;
    let all = [decided, degraded, beside, given_back, lost, restored, probes, told, untold];
    assert!(all.iter().all(|times| *times > 0), "{figures:?}");
}

/// On every processor. The first seed that fails is told, with the command that replays it.
fn simulate_all(seeds: u64) -> Figures {
    let (next, all) = (AtomicU64::new(0), Mutex::new(Figures::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            match simulate(seed) {
                Ok(figures) => *all.lock().unwrap() += figures,
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
    all.into_inner().unwrap()
}

#[test]
fn a_seed_is_always_the_same_hour() {
    for seed in [3, 14, 159] {
        assert_eq!(replay(seed).unwrap(), replay(seed).unwrap());
    }
}
