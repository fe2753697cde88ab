//! Stored state of one key.

use std::time::Duration;

use super::concurrency::Slots;
use super::fixed_window::{Aligned, Window};
use super::pause::{self, Paused};
use super::sliding_counter::Counter;
use super::sliding_window::Log;
use super::token_bucket::Bucket;
use crate::algorithm::PermitId;
use crate::time::Timestamp;

/// Stored state of one key. Only the key's algorithm reads its contents.
///
/// A state contains the parameters it was written with. A store can therefore detect without the limit
/// that the key is fresh again, and a step can convert the state when the limit's parameters change.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum State {
    /// The key was never used.
    #[default]
    Fresh,
    /// State of a token bucket.
    Bucket(Bucket),
    /// State of a sliding window.
    Log(Box<Log>),
    /// State of a sliding counter.
    Counter(Counter),
    /// State of a fixed window.
    Window(Window),
    /// State of a calendar window.
    Aligned(Aligned),
    /// State of a concurrency limit.
    Slots(Box<Slots>),
    /// A pause around any of the other states.
    Paused(Box<Paused>),
}

/// Defines an accessor for one algorithm's state, which replaces a state of another algorithm by a default one.
macro_rules! as_variant {
    ($name:ident, $variant:ident, $inner:ty) => {
        #[inline]
        pub(super) fn $name(&mut self) -> &mut $inner {
            if !matches!(self, Self::$variant(_)) {
                *self = Self::$variant(Default::default());
            }
            match self {
                Self::$variant(inner) => inner,
                _ => unreachable!("replaced above"),
            }
        }
    };
}

impl State {
    as_variant!(bucket, Bucket, Bucket);
    as_variant!(log, Log, Log);
    as_variant!(counter, Counter, Counter);
    as_variant!(window, Window, Window);
    as_variant!(aligned, Aligned, Aligned);
    as_variant!(slots, Slots, Slots);

    /// Refuses every take from the key for `length`, even if quota remains. A shorter pause does not
    /// shorten a longer one.
    pub fn pause(&mut self, now: Timestamp, length: Duration) {
        pause::begin(self, now.as_micros(), length);
    }

    /// Returns true if the permit holds unexpired slots of the key.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::algorithm::{Op, State};
    /// use tollgate::{PermitId, Limit, Timestamp};
    ///
    /// let limit = Limit::concurrency(1, Duration::from_secs(30))?;
    /// let (mut state, now, permit) = (State::Fresh, Timestamp::EPOCH, PermitId::random());
    /// let _ = limit.parameters().step(&mut state, now, Op::Hold { cost: 1, permit });
    /// assert!(state.holds(now, permit) && state.release(now, permit));
    /// assert!(state.is_fresh(now));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    pub fn holds(&self, now: Timestamp, permit: PermitId) -> bool {
        match self {
            Self::Slots(slots) => slots.holds(now.as_micros(), permit),
            Self::Paused(paused) => paused.inner().holds(now, permit),
            _ => false,
        }
    }

    /// Releases the permit's slots, also during a pause. Returns false and changes nothing if the permit
    /// holds no unexpired slot of the key.
    pub fn release(&mut self, now: Timestamp, permit: PermitId) -> bool {
        let released = match self {
            Self::Slots(slots) => slots.release(now.as_micros(), permit),
            Self::Paused(paused) => paused.inner_mut().release(now, permit),
            _ => false,
        };
        // Stores drop a fresh key immediately, so all stores agree on the remaining state.
        if released && self.is_fresh(now) {
            *self = Self::Fresh;
        }
        released
    }

    /// Extends each of the permit's slots to `now` plus its original TTL, also during a pause, and returns
    /// the earliest expiry. Returns `None` and changes nothing if the permit holds no unexpired slot.
    pub fn renew(&mut self, now: Timestamp, permit: PermitId) -> Option<Timestamp> {
        match self {
            Self::Slots(slots) => slots.renew(now.as_micros(), permit).map(Timestamp::from_micros),
            Self::Paused(paused) => paused.inner_mut().renew(now, permit),
            _ => None,
        }
    }

    /// Returns true if the state at `now` equals that of a key that was never used. A store may then drop it.
    #[must_use]
    #[inline]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.is_fresh_at(now.as_micros())
    }

    pub(super) fn is_fresh_at(&self, now: u64) -> bool {
        match self {
            Self::Fresh => true,
            Self::Bucket(bucket) => bucket.is_fresh(now),
            Self::Log(log) => log.is_fresh(now),
            Self::Counter(counter) => counter.is_fresh(now),
            Self::Window(window) => window.is_fresh(now),
            Self::Aligned(aligned) => aligned.is_fresh(now),
            Self::Slots(slots) => slots.is_fresh(now),
            Self::Paused(paused) => paused.is_fresh(now),
        }
    }
}
