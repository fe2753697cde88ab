//! The lock of a shard.
//!
//! A shard is locked for some tens of nanoseconds. An unlock that has to look for waiting threads is an atomic exchange,
//! which takes a fifth of a decision. A spinlock unlocks with a plain store. Its waiters spin only shortly, so a thread that is
//! suspended while it holds the lock costs them little CPU time.

use std::hint;
use std::thread;
use std::time::Duration;

use spinning_top::RawSpinlock;
use spinning_top::relax::Relax;

pub(super) type Mutex<T> = lock_api::Mutex<RawSpinlock<Backoff>, T>;
pub(super) type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawSpinlock<Backoff>, T>;

/// Rounds of spinning, each twice as long as the one before.
const SPINS: u32 = 6;
/// Rounds until which a waiter only lets other threads run.
const YIELDS: u32 = SPINS + 32;
/// Time of each further round.
const SLEEP: Duration = Duration::from_micros(50);

/// How a thread waits for a lock: it spins for less than a microsecond, then lets other threads run, then sleeps.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    rounds: u32,
}

impl Relax for Backoff {
    #[inline]
    fn relax(&mut self) {
        if self.rounds < SPINS {
            (0..1_u32 << self.rounds).for_each(|_| hint::spin_loop());
            self.rounds += 1;
        } else {
            self.wait();
        }
    }
}

impl Backoff {
    #[cold]
    fn wait(&mut self) {
        if self.rounds < YIELDS {
            self.rounds += 1;
            thread::yield_now();
        } else {
            #[expect(
                clippy::disallowed_methods,
                reason = "the holder of the lock is suspended and cannot wake a waiter"
            )]
            thread::sleep(SLEEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn threads_exclude_each_other() {
        let (threads, rounds) = (4, 20_000);
        let total = Mutex::new(0_u64);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for round in 0..rounds {
                        let mut total = total.lock();
                        let seen = *total;
                        if round % 1000 == 0 {
                            // Other threads reach each phase of waiting.
                            (0..50).for_each(|_| thread::yield_now());
                        }
                        *total = seen + 1;
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), threads * rounds);
    }

    #[test]
    fn waiters_of_a_suspended_holder_sleep() {
        let (mut backoff, begin, rounds) = (Backoff::default(), Instant::now(), 20);
        for _ in 0..YIELDS + rounds {
            backoff.relax();
        }
        assert!(begin.elapsed() >= SLEEP * rounds);
    }
}
