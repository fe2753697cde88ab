//! The algorithms: pure integer steps over small states.
//!
//! A step takes the numbers of a limit, the stored state of one key, the time and an operation, and
//! gives a [`Reply`]. It touches nothing else, so that another language can compute the same: all
//! integers stay at or below 2^53, and the rounding is stated where it happens.
//!
//! A step changes the stored state in two cases only: the operation took effect, or the state needed
//! **repair** (its clock was ahead, or the limit's numbers have changed since). A refusal or a peek
//! of a sound state leaves the key as it was.
//!
//! ```
//! use tollgate::algorithm::{Op, State};
//! use tollgate::{Limit, Quota, Timestamp};
//!
//! let limit = Limit::token_bucket(Quota::per_second(1).burst(2))?;
//! let (mut state, now) = (State::Fresh, Timestamp::EPOCH);
//! let reply = limit.parameters().step(&mut state, now, Op::Take { cost: 2 });
//! assert!(reply.is_allowed());
//! assert!(!limit.parameters().step(&mut state, now, Op::Take { cost: 1 }).is_allowed());
//! assert!(state.is_fresh(Timestamp::from_micros(2_000_000)));
//! # Ok::<(), tollgate::QuotaError>(())
//! ```

mod arithmetic;
mod calendar;
mod concurrency;
mod fixed_window;
mod pause;
mod saved;
mod sliding_counter;
mod sliding_window;
mod state;
mod token_bucket;

use std::time::Duration;

pub use calendar::{Calendar, CalendarUnit};
pub use concurrency::Concurrency;
pub use fixed_window::{AlignedWindow, FixedWindow};
pub use sliding_counter::SlidingCounter;
pub use sliding_window::SlidingWindow;
pub use state::State;
pub(crate) use token_bucket::Bucket;
pub use token_bucket::TokenBucket;

use crate::decision::Verdict;
use crate::permit::PermitId;
use crate::time::{Timestamp, micros_up};

/// What is asked of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Takes the cost if there is room for it.
    Take {
        /// How much.
        cost: u64,
    },
    /// A take whose slots carry a permit, to be given back or renewed by it. Where there are no slots
    /// it is a take.
    Hold {
        /// How much.
        cost: u64,
        /// Whose.
        permit: PermitId,
    },
    /// Tells what a take would be told, and changes nothing.
    Peek {
        /// How much.
        cost: u64,
    },
    /// Gives back, never above full. What was taken last returns first. It does nothing to slots,
    /// which are given back by their permit.
    Refund {
        /// How much.
        cost: u64,
    },
    /// Takes without asking, as if it had happened `age` ago; clamped at empty.
    Debit {
        /// How much.
        cost: u64,
        /// How long ago it was spent.
        age: Duration,
    },
}

/// What a step answers: the verdict, and the figures after it. What is used is the limit's capacity
/// less what remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Reply {
    wait: Wait,
    remaining: u64,
    reset_after: u64,
}

/// A verdict in one word: what three integers on a wire, or a register, can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wait(u64);

impl Wait {
    const NONE: Self = Self(0);
    const FOREVER: Self = Self(u64::MAX);
}

impl Reply {
    /// An answer: the verdict (of a refund or a debit always allowed), what could be taken now, and
    /// the time until the limit is full again. Times round up to whole microseconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Verdict, algorithm::Reply};
    ///
    /// let verdict = Verdict::Deny { retry_after: Duration::from_nanos(1) };
    /// let reply = Reply::new(verdict, 0, Duration::ZERO);
    /// assert_eq!(reply.verdict().retry_after(), Some(Duration::from_micros(1)));
    /// ```
    pub fn new(verdict: Verdict, remaining: u64, reset_after: Duration) -> Self {
        let wait = match verdict {
            Verdict::Allow => Wait::NONE,
            // A refusal stays one, however short or long its wait.
            Verdict::Deny { retry_after } => {
                Wait(micros_up(retry_after).clamp(1, Wait::FOREVER.0 - 1))
            }
            Verdict::Never => Wait::FOREVER,
        };
        Self { wait, remaining, reset_after: micros_up(reset_after) }
    }

    /// Whether it passes.
    #[inline]
    pub const fn verdict(&self) -> Verdict {
        match self.wait {
            Wait::NONE => Verdict::Allow,
            Wait::FOREVER => Verdict::Never,
            Wait(micros) => Verdict::Deny { retry_after: Duration::from_micros(micros) },
        }
    }

    /// Whether it passes.
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        self.wait.0 == 0
    }

    /// What could be taken now.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The time until the limit is full again.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        Duration::from_micros(self.reset_after)
    }

    /// The greater, the more it is in the way: waiting longer, and never most of all.
    pub(crate) const fn severity(&self) -> u64 {
        self.wait.0
    }

    /// The same figures under another verdict.
    pub(crate) fn with_verdict(self, verdict: Verdict) -> Self {
        Self::new(verdict, self.remaining, self.reset_after())
    }

    /// The same verdict, with so much less remaining.
    #[cfg(feature = "policy")]
    pub(crate) const fn with_less(self, taken: u64) -> Self {
        Self { remaining: self.remaining.saturating_sub(taken), ..self }
    }

    /// The same verdict, with no more remaining than `capacity`.
    pub(crate) const fn within(self, capacity: u64) -> Self {
        if self.remaining <= capacity { self } else { Self { remaining: capacity, ..self } }
    }
}

/// The numbers of a limit, compiled for its algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parameters {
    /// Refuses everything.
    Block,
    /// See [`TokenBucket`].
    TokenBucket(TokenBucket),
    /// See [`SlidingWindow`].
    SlidingWindow(SlidingWindow),
    /// See [`SlidingCounter`].
    SlidingCounter(SlidingCounter),
    /// See [`FixedWindow`].
    FixedWindow(FixedWindow),
    /// See [`AlignedWindow`].
    AlignedWindow(AlignedWindow),
    /// See [`Concurrency`].
    Concurrency(Concurrency),
}

impl Parameters {
    /// Applies `op` to the `state` of one key at `now`.
    #[inline(always)]
    pub fn step(&self, state: &mut State, now: Timestamp, op: Op) -> Reply {
        if matches!(state, State::Paused(_)) {
            return pause::step(self, state, now, op);
        }
        self.step_unpaused(state, now.as_micros(), op)
    }

    #[inline(always)]
    fn step_unpaused(&self, state: &mut State, now: u64, op: Op) -> Reply {
        match self {
            Self::TokenBucket(numbers) => numbers.step(state.bucket(), now, op),
            Self::SlidingWindow(numbers) => numbers.step(state.log(), now, op),
            Self::SlidingCounter(numbers) => numbers.step(state.counter(), now, op),
            Self::FixedWindow(numbers) => numbers.step(state.window(), now, op),
            Self::AlignedWindow(numbers) => numbers.step(state.aligned(), now, op),
            Self::Concurrency(numbers) => numbers.step(state.slots(), now, op),
            Self::Block => Reply { wait: Wait::FOREVER, remaining: 0, reset_after: 0 },
        }
    }

    #[inline]
    pub(crate) const fn as_token_bucket(&self) -> Option<&TokenBucket> {
        match self {
            Self::TokenBucket(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The most that can ever be taken at once.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Block => 0,
            Self::TokenBucket(numbers) => numbers.burst(),
            Self::SlidingWindow(numbers) => numbers.count(),
            Self::SlidingCounter(numbers) => numbers.count(),
            Self::FixedWindow(numbers) => numbers.count(),
            Self::AlignedWindow(numbers) => numbers.count(),
            Self::Concurrency(numbers) => numbers.count(),
        }
    }
}
