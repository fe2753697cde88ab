//! A pass: one timed stretch of decisions of one contestant.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::keys::{Draw, KeyText, Picks, Shape};
use crate::limiter::Limiter;

/// What a pass is to do.
#[derive(Debug, Clone, Copy)]
pub struct Run<'k> {
    /// Where keys come from.
    pub draw: Draw<'k>,
    /// How many decisions each thread takes.
    pub decisions: u32,
}

/// How a pass went.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Pass {
    elapsed: Duration,
    decisions: u32,
    refused: u32,
}

impl Pass {
    /// Nanoseconds per decision, as the thread that asks for it waits.
    ///
    /// # Errors
    /// A decision was refused: it then measured something else.
    pub fn nanos(&self) -> Outcome<f64> {
        let Self { elapsed, decisions, refused } = *self;
        if refused > 0 {
            return Err(format!("{refused} of {decisions} decisions were refused").into());
        }
        Ok(elapsed.as_secs_f64() * 1e9 / f64::from(decisions))
    }
}

/// A limiter that runs whole passes, so that each has a loop compiled for it.
pub trait Contestant {
    /// By one thread that has the limiter to itself.
    fn alone(&mut self, run: &Run<'_>) -> Pass;

    /// A pass nobody times, with keys drawn anew: it brings the limiter back into the
    /// caches that its rivals have filled.
    fn warm_up(&mut self, run: &Run<'_>);

    /// By so many threads at once.
    fn together(&self, run: &Run<'_>, threads: u32) -> Pass;

    /// Every single decision's time in nanoseconds, by one thread.
    fn each(&mut self, run: &Run<'_>) -> Vec<u32>;

    /// Makes sure that it still holds every key it was given.
    ///
    /// # Errors
    /// It has dropped some, and so has done other work than the rest.
    fn holds_all(&self) -> Outcome<()>;
}

impl<L: Limiter> Contestant for L {
    fn alone(&mut self, run: &Run<'_>) -> Pass {
        drive(run, 1, |key| self.admit_alone(key))
    }

    fn warm_up(&mut self, run: &Run<'_>) {
        let _ = drive(run, u64::MAX, |key| self.admit_alone(key));
    }

    fn together(&self, run: &Run<'_>, threads: u32) -> Pass {
        let start = Barrier::new(threads as usize);
        let one = |seed: u32| {
            start.wait();
            drive(run, u64::from(seed), |key| self.admit(key))
        };
        let passes: Vec<Pass> = thread::scope(|scope| {
            let one = &one;
            let spawned: Vec<_> = (0..threads).map(|seed| scope.spawn(move || one(seed))).collect();
            spawned.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        Pass {
            elapsed: passes.iter().map(|pass| pass.elapsed).sum::<Duration>() / threads,
            decisions: run.decisions,
            refused: passes.iter().map(|pass| pass.refused).sum(),
        }
    }

    fn each(&mut self, run: &Run<'_>) -> Vec<u32> {
        each(run, |key| self.admit_alone(key))
    }

    fn holds_all(&self) -> Outcome<()> {
        match self.dropped() {
            0 => Ok(()),
            dropped => Err(format!("{dropped} keys were dropped").into()),
        }
    }
}

/// A pass that decides nothing: what drawing keys costs by itself.
pub fn draw_only(run: &Run<'_>) -> Pass {
    drive(run, 1, |key| black_box(key).len() > 1)
}

/// [`Contestant::each`] deciding nothing: what the machine itself does to a measurement.
#[must_use]
pub fn each_nothing(run: &Run<'_>) -> Vec<u32> {
    each(run, |key| black_box(key).len() > 1)
}

fn each(run: &Run<'_>, mut admit: impl FnMut(&String) -> bool) -> Vec<u32> {
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
fn drive(run: &Run<'_>, seed: u64, mut admit: impl FnMut(&String) -> bool) -> Pass {
    let mut picks = Picks::new(seed);
    let mut text = KeyText::new(match run.draw {
        Draw::Written { shape, .. } | Draw::InTurn { shape, .. } => shape,
        Draw::Hot | Draw::Array(_) => Shape::User,
    });
    let mut refused = 0;
    let started = Instant::now();
    match run.draw {
        Draw::Hot => {
            let key = text.write(0);
            (0..run.decisions).for_each(|_| refused += u32::from(!admit(key)));
        }
        Draw::Written { below, .. } => (0..run.decisions).for_each(|_| {
            refused += u32::from(!admit(text.write(picks.below(below))));
        }),
        Draw::Array(keys) => {
            let count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
            let picked = (0..run.decisions).map(|_| picks.below(count) as usize);
            let keys = picked.filter_map(|index| keys.get(index));
            keys.for_each(|key| refused += u32::from(!admit(key)));
        }
        Draw::InTurn { from, .. } => (from..from + run.decisions).for_each(|number| {
            refused += u32::from(!admit(text.write(number)));
        }),
    }
    Pass { elapsed: started.elapsed(), decisions: run.decisions, refused }
}
