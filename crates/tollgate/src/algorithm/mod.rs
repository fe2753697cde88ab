//! Rate limiting algorithms as pure integer functions over small states.
//!
//! [`Parameters::step`] takes a limit's parameters, the stored state of one key, the time and an
//! operation, and returns a [`Reply`]. It has no other inputs or effects, so the Lua scripts can compute
//! the same result: all integers are at most 2^53, and every division states its rounding.
//!
//! A step changes the stored state in two cases only: the operation took effect, or the state needed
//! **repair** (its time stamp is later than `now`, or the limit's parameters changed). A refusal or a
//! peek of any other state leaves the key unchanged.
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

mod adjustment;
pub(crate) mod arithmetic;
mod calendar;
mod concurrency;
mod fixed_window;
mod pause;
pub(crate) mod permit_id;
pub(crate) mod reply;
mod saved;
mod sliding_counter;
mod sliding_window;
mod state;
pub(crate) mod table;
mod token_bucket;

use std::time::Duration;

use adjustment::Change;
pub use adjustment::{Adjusted, Adjustment};
pub use calendar::{Calendar, CalendarUnit};
pub use concurrency::Concurrency;
pub use fixed_window::{AlignedWindow, FixedWindow};
pub(crate) use permit_id::PermitId;
pub use reply::Reply;
pub(crate) use reply::Verdict;
use reply::Wait;
pub use sliding_counter::SlidingCounter;
pub use sliding_window::SlidingWindow;
pub use state::State;
pub use table::Letter;
pub(crate) use table::{Algorithm, LeaseRule, LimitField};
pub use token_bucket::TokenBucket;
pub(crate) use token_bucket::{Bucket, BucketTake};

use crate::time::Timestamp;

/// An operation on one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Takes the cost if enough quota remains.
    Take {
        /// Quota units.
        cost: u64,
    },
    /// A take whose slots carry a permit, which later releases or renews them. The same as `Take` for
    /// limits without slots.
    Hold {
        /// Number of slots.
        cost: u64,
        /// The permit that holds the slots.
        permit: PermitId,
        /// Maximum time for which the slots are held, if it is shorter than that of the limit.
        ttl: Duration,
    },
    /// Returns the reply that a take would get, and takes nothing.
    Peek {
        /// Quota units.
        cost: u64,
    },
    /// Returns quota, never above full, the most recent takes first. No effect on slots, which only
    /// their permit releases.
    Refund {
        /// Quota units.
        cost: u64,
    },
    /// Takes unconditionally, as if `age` ago; the key never goes below empty.
    Debit {
        /// Quota units.
        cost: u64,
        /// Time since the quota was used.
        age: Duration,
    },
    /// Takes an amount that a node spends later, at any time within `hold`. A token bucket takes it as if at the end of
    /// `hold`, because quota that refills before would count twice; see [`lease`](crate::lease) for the other limits.
    Lease {
        /// Quota units.
        amount: u64,
        /// Time in which the node spends the amount.
        hold: Duration,
    },
}

/// A limit's algorithm with its integer parameters. A store must support every variant.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Applies `op` to the `state` of one key at time `now`.
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
            Self::TokenBucket(parameters) => parameters.step(state.bucket(), now, op),
            Self::SlidingWindow(parameters) => parameters.step(state.log(), now, op),
            Self::SlidingCounter(parameters) => parameters.step(state.counter(), now, op),
            Self::FixedWindow(parameters) => parameters.step(state.window(), now, op),
            Self::AlignedWindow(parameters) => parameters.step(state.aligned(), now, op),
            Self::Concurrency(parameters) => parameters.step(state.slots(), now, op),
            Self::Block => Reply::NEVER,
        }
    }

    /// Applies an adjustment to the `state` of one key at time `now`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::algorithm::{Adjustment, Op, State};
    /// use tollgate::{Limit, Quota, Timestamp};
    ///
    /// let limit = Limit::fixed_window(Quota::per_minute(100))?;
    /// let (mut state, now) = (State::Fresh, Timestamp::EPOCH);
    /// let _ = limit.parameters().step(&mut state, now, Op::Take { cost: 80 });
    /// let give_back = Adjustment::GiveBack { amount: 60, age: Duration::ZERO, deficit: 0 };
    /// let adjusted = limit.parameters().adjust(&mut state, now, give_back);
    /// assert_eq!((adjusted.amount, adjusted.reply.remaining()), (60, 80));
    ///
    /// let adjusted = limit.parameters().adjust(&mut state, now, Adjustment::Overdraw { amount: 500 });
    /// assert_eq!((adjusted.amount, adjusted.reply.debt()), (180, 100));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    pub fn adjust(&self, state: &mut State, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        let at = now.as_micros();
        let unpaused = match &mut *state {
            State::Paused(paused) => paused.inner_mut(),
            unpaused => unpaused,
        };
        let change = match self {
            Self::TokenBucket(parameters) => parameters.adjust(unpaused.bucket(), at, adjustment),
            Self::SlidingWindow(parameters) => parameters.adjust(unpaused.log(), at, adjustment),
            Self::SlidingCounter(parameters) => {
                parameters.adjust(unpaused.counter(), at, adjustment)
            }
            Self::FixedWindow(parameters) => parameters.adjust(unpaused.window(), at, adjustment),
            Self::AlignedWindow(parameters) => {
                parameters.adjust(unpaused.aligned(), at, adjustment)
            }
            Self::Concurrency(_) | Self::Block => Change::default(),
        };
        let Change { amount, grains } = change;
        Adjusted { reply: self.step(state, now, Op::Peek { cost: 0 }), amount, grains }
    }

    /// Returns the deficit of a token bucket at time `now`, in grains; 0 for the other algorithms. Needed to give back a
    /// part of a take later, see [`Adjustment::GiveBack`].
    #[must_use]
    pub fn deficit(&self, state: &State, now: Timestamp) -> u64 {
        match (self, state) {
            (Self::TokenBucket(parameters), State::Bucket(bucket)) => {
                parameters.deficit(bucket, now.as_micros())
            }
            (_, State::Paused(paused)) => self.deficit(paused.inner(), now),
            _ => 0,
        }
    }

    #[inline]
    pub(crate) const fn as_token_bucket(&self) -> Option<&TokenBucket> {
        if let Self::TokenBucket(parameters) = self { Some(parameters) } else { None }
    }

    /// First letter of the limit's identity.
    #[must_use]
    #[inline]
    pub const fn letter(&self) -> Letter {
        match self {
            Self::Block => Letter::Block,
            Self::TokenBucket(_) => Letter::TokenBucket,
            Self::SlidingWindow(_) => Letter::SlidingWindow,
            Self::SlidingCounter(_) => Letter::SlidingCounter,
            Self::FixedWindow(_) => Letter::FixedWindow,
            Self::AlignedWindow(_) => Letter::CalendarWindow,
            Self::Concurrency(_) => Letter::Concurrency,
        }
    }

    /// How debits replay takes that another store did not count.
    pub(crate) const fn replay(&self) -> Replay {
        match self {
            // A fixed window starts at its first take: the age makes it end at the right time.
            Self::FixedWindow(_) => Replay::Sum { is_aged: true },
            Self::Block | Self::TokenBucket(_) | Self::AlignedWindow(_) => {
                Replay::Sum { is_aged: false }
            }
            Self::SlidingWindow(_) | Self::Concurrency(_) => Replay::Each { windows: 1 },
            // In the following window a take counts in proportion to the overlap.
            Self::SlidingCounter(_) => Replay::Each { windows: 2 },
        }
    }

    /// Maximum cost of one take.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Block => 0,
            Self::TokenBucket(parameters) => parameters.burst(),
            Self::SlidingWindow(parameters) => parameters.count(),
            Self::SlidingCounter(parameters) => parameters.count(),
            Self::FixedWindow(parameters) => parameters.count(),
            Self::AlignedWindow(parameters) => parameters.count(),
            Self::Concurrency(parameters) => parameters.count(),
        }
    }
}

/// How debits replay takes that another store did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replay {
    /// One debit of the sum that still counts.
    Sum {
        /// Whether the debit has the age of the first take, or no age.
        is_aged: bool,
    },
    /// One debit for each take, with its age.
    Each {
        /// Number of windows (or TTLs) for which a take counts.
        windows: u32,
    },
}
