//! A timed run: consecutive decisions of one limiter.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::keys::{Draw, KeyFormat, KeyText, Rng};
use crate::limiter::Limiter;

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Run<'k> {
    /// How keys are chosen.
    pub draw: Draw<'k>,
    /// Decisions per thread.
    pub decisions: u32,
}

/// The result of a run.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Timing {
    elapsed: Duration,
    decisions: u32,
    refused: u32,
}

impl Timing {
    /// Returns nanoseconds per decision, as seen by the calling thread.
    ///
    /// # Errors
    /// A decision was refused, so the run is invalid.
    pub fn nanos(&self) -> Outcome<f64> {
        let Self { elapsed, decisions, refused } = *self;
        if refused > 0 {
            return Err(format!("{refused} of {decisions} decisions were refused").into());
        }
        Ok(elapsed.as_secs_f64() * 1e9 / f64::from(decisions))
    }
}

/// A limiter that executes whole runs. Each implementation gets its own compiled loop.
pub trait TimedLimiter {
    /// Runs on one thread with exclusive access.
    fn run_exclusive(&mut self, run: &Run<'_>) -> Timing;

    /// Executes an untimed run with different random keys. It reloads the limiter into the CPU
    /// caches that the other limiters have filled.
    fn warm_up(&mut self, run: &Run<'_>);

    /// Runs on several threads concurrently.
    fn run_threads(&self, run: &Run<'_>, threads: u32) -> Timing;

    /// Runs on one thread and returns the time of each decision, in nanoseconds.
    fn time_each(&mut self, run: &Run<'_>) -> Vec<u32>;

    /// Checks that the limiter still holds all keys.
    ///
    /// # Errors
    /// The limiter dropped keys, so it did different work than the others.
    fn check_no_drops(&self) -> Outcome<()>;
}

impl<L: Limiter> TimedLimiter for L {
    fn run_exclusive(&mut self, run: &Run<'_>) -> Timing {
        drive(run, 1, |key| self.admit_exclusive(key))
    }

    fn warm_up(&mut self, run: &Run<'_>) {
        let _ = drive(run, u64::MAX, |key| self.admit_exclusive(key));
    }

    fn run_threads(&self, run: &Run<'_>, threads: u32) -> Timing {
        let start = Barrier::new(threads as usize);
        let run_thread = |seed: u32| {
            start.wait();
            drive(run, u64::from(seed), |key| self.admit(key))
        };
        let timings: Vec<Timing> = thread::scope(|scope| {
            let run_thread = &run_thread;
            let spawned: Vec<_> =
                (0..threads).map(|seed| scope.spawn(move || run_thread(seed))).collect();
            spawned.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        Timing {
            elapsed: timings.iter().map(|timing| timing.elapsed).sum::<Duration>() / threads,
            decisions: run.decisions,
            refused: timings.iter().map(|timing| timing.refused).sum(),
        }
    }

    fn time_each(&mut self, run: &Run<'_>) -> Vec<u32> {
        time_each(run, |key| self.admit_exclusive(key))
    }

    fn check_no_drops(&self) -> Outcome<()> {
        match self.dropped_keys() {
            0 => Ok(()),
            dropped => Err(format!("{dropped} keys were dropped").into()),
        }
    }
}

/// Executes a run without decisions, to measure the cost of choosing keys.
pub fn draw_only(run: &Run<'_>) -> Timing {
    drive(run, 1, |key| black_box(key).len() > 1)
}

/// Like [`TimedLimiter::time_each`] without decisions, to measure the pauses of the machine itself.
#[must_use]
pub fn time_each_empty(run: &Run<'_>) -> Vec<u32> {
    time_each(run, |key| black_box(key).len() > 1)
}

fn time_each(run: &Run<'_>, mut admit: impl FnMut(&String) -> bool) -> Vec<u32> {
    let mut nanos = Vec::with_capacity(run.decisions as usize);
    let _ = drive(run, 1, |key| {
        let started = Instant::now();
        let admitted = admit(key);
        nanos.push(u32::try_from(started.elapsed().as_nanos()).unwrap_or(u32::MAX));
        admitted
    });
    nanos
}

#[inline]
fn drive(run: &Run<'_>, seed: u64, mut admit: impl FnMut(&String) -> bool) -> Timing {
    let mut rng = Rng::new(seed);
    let mut text = KeyText::new(match run.draw {
        Draw::Written { key_format, .. } | Draw::Sequential { key_format, .. } => key_format,
        Draw::Hot | Draw::Array(_) => KeyFormat::User,
    });
    let mut refused = 0;
    let started = Instant::now();
    match run.draw {
        Draw::Hot => {
            let key = text.write(0);
            (0..run.decisions).for_each(|_| refused += u32::from(!admit(key)));
        }
        Draw::Written { below, .. } => (0..run.decisions).for_each(|_| {
            refused += u32::from(!admit(text.write(rng.below(below))));
        }),
        Draw::Array(keys) => {
            let count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
            let picked = (0..run.decisions).map(|_| rng.below(count) as usize);
            let keys = picked.filter_map(|index| keys.get(index));
            keys.for_each(|key| refused += u32::from(!admit(key)));
        }
        Draw::Sequential { from, .. } => (from..from + run.decisions).for_each(|number| {
            refused += u32::from(!admit(text.write(number)));
        }),
    }
    Timing { elapsed: started.elapsed(), decisions: run.decisions, refused }
}
