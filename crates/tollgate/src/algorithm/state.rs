//! What a store keeps for one key.

use std::time::Duration;

use super::concurrency::Slots;
use super::fixed_window::{Aligned, Window};
use super::pause::{self, Paused};
use super::sliding_counter::Counter;
use super::sliding_window::Log;
use super::token_bucket::Bucket;
use crate::permit::PermitId;
use crate::time::Timestamp;

/// The state of one key, opaque to all but its algorithm.
///
/// Each state carries the numbers it was written under, so that it can tell by itself when it has
/// become equal to "never seen", and can be converted when the limit's numbers change.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum State {
    /// Never seen.
    #[default]
    Fresh,
    /// Of a token bucket.
    Bucket(Bucket),
    /// Of a sliding window.
    Log(Box<Log>),
    /// Of a sliding counter.
    Counter(Counter),
    /// Of a fixed window.
    Window(Window),
    /// Of a calendar window.
    Aligned(Aligned),
    /// Of a concurrency limit.
    Slots(Box<Slots>),
    /// Paused, with any of the others beneath.
    Paused(Box<Paused>),
}

/// The state as this algorithm's, begun anew if it is another's.
macro_rules! as_variant {
    ($name:ident, $variant:ident, $inner:ty) => {
        #[inline]
        pub(super) fn $name(&mut self) -> &mut $inner {
            if !matches!(self, Self::$variant(_)) {
                *self = Self::$variant(Default::default());
            }
            match self {
                Self::$variant(inner) => inner,
                _ => unreachable!("just made so"),
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

    /// Refuses every take from the key for so long, whatever room it has. A shorter pause does not
    /// end a longer one.
    pub fn pause(&mut self, now: Timestamp, length: Duration) {
        pause::begin(self, now.as_micros(), length);
    }

    /// Whether the permit has slots of the key in use.
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

    /// Gives the permit's slots back, also beneath a pause. False, and nothing has changed, if it has
    /// none in use; what has returned by itself is not in use.
    pub fn release(&mut self, now: Timestamp, permit: PermitId) -> bool {
        let released = match self {
            Self::Slots(slots) => slots.release(now.as_micros(), permit),
            Self::Paused(paused) => paused.inner_mut().release(now, permit),
            _ => false,
        };
        // A store forgets such a key at once; every store then agrees on what is left of it.
        if released && self.is_fresh(now) {
            *self = Self::Fresh;
        }
        released
    }

    /// Lets the permit's slots last for their own length from `now`, also beneath a pause, and tells
    /// when the first of them returns. None, and nothing has changed, if it has none in use.
    pub fn renew(&mut self, now: Timestamp, permit: PermitId) -> Option<Timestamp> {
        match self {
            Self::Slots(slots) => slots.renew(now.as_micros(), permit).map(Timestamp::from_micros),
            Self::Paused(paused) => paused.inner_mut().renew(now, permit),
            _ => None,
        }
    }

    /// Whether the key is at `now` as if it had never been seen. It may then be forgotten.
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
