//! Stored state of one key.

use std::time::Duration;

use super::concurrency::Slots;
use super::fixed_window::{Aligned, Window};
use super::pause::{self, Paused};
use super::saved::Saved;
use super::sliding_counter::Counter;
use super::sliding_window::Log;
use super::token_bucket::Bucket;
use super::{Letter, PermitId};
use crate::fields::Fields;
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
            let Self::$variant(inner) = self else { unreachable!("replaced above") };
            inner
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
    /// let _ = limit.parameters().step(&mut state, now, Op::Hold { cost: 1, permit, ttl: Duration::MAX });
    /// assert!(state.holds(now, permit) && state.release(now, permit));
    /// assert!(state.is_fresh(now));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    pub fn holds(&self, now: Timestamp, permit: PermitId) -> bool {
        match self {
            Self::Slots(slots) => slots.holds(now.as_micros(), permit),
            Self::Paused(paused) => paused.inner().holds(now, permit),
            Self::Fresh
            | Self::Bucket(_)
            | Self::Log(_)
            | Self::Counter(_)
            | Self::Window(_)
            | Self::Aligned(_) => false,
        }
    }

    /// Releases the permit's slots, also during a pause. Returns false and changes nothing if the permit
    /// holds no unexpired slot of the key.
    pub fn release(&mut self, now: Timestamp, permit: PermitId) -> bool {
        let released = match self {
            Self::Slots(slots) => slots.release(now.as_micros(), permit),
            Self::Paused(paused) => paused.inner_mut().release(now, permit),
            Self::Fresh
            | Self::Bucket(_)
            | Self::Log(_)
            | Self::Counter(_)
            | Self::Window(_)
            | Self::Aligned(_) => false,
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
            Self::Fresh
            | Self::Bucket(_)
            | Self::Log(_)
            | Self::Counter(_)
            | Self::Window(_)
            | Self::Aligned(_) => None,
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

// A saved state starts with the letter of its limit's identity, or with one of these tags.
const FRESH: u8 = b'-';
const PAUSED: u8 = b'p';

impl State {
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        match self {
            Self::Fresh => out.push(FRESH),
            Self::Bucket(bucket) => save_as(Letter::TokenBucket.byte(), bucket, out),
            Self::Log(log) => save_as(Letter::SlidingWindow.byte(), &**log, out),
            Self::Counter(counter) => save_as(Letter::SlidingCounter.byte(), counter, out),
            Self::Window(window) => save_as(Letter::FixedWindow.byte(), window, out),
            Self::Aligned(aligned) => save_as(Letter::CalendarWindow.byte(), aligned, out),
            Self::Slots(slots) => save_as(Letter::Concurrency.byte(), &**slots, out),
            Self::Paused(paused) => {
                save_as(PAUSED, &**paused, out);
                paused.inner().save(out);
            }
        }
    }

    /// Decodes a state of a limit whose identity starts with `letter`. Returns `None` if it is invalid.
    pub(crate) fn load(letter: u8, fields: &mut Fields<'_>) -> Option<Self> {
        match fields.byte()? {
            PAUSED => {
                let paused = Paused::load(fields)?;
                let tag = fields.byte()?;
                let inner = Self::load_unpaused(letter, tag, fields)?;
                Some(Self::Paused(Box::new(paused.with_inner(inner))))
            }
            tag => Self::load_unpaused(letter, tag, fields),
        }
    }

    fn load_unpaused(letter: u8, tag: u8, fields: &mut Fields<'_>) -> Option<Self> {
        if tag == FRESH {
            return Some(Self::Fresh);
        }
        Some(match Letter::from_byte(tag).filter(|_| tag == letter)? {
            Letter::Block => return None,
            Letter::TokenBucket => Self::Bucket(Bucket::load(fields)?),
            Letter::SlidingWindow => Self::Log(Box::new(Log::load(fields)?)),
            Letter::SlidingCounter => Self::Counter(Counter::load(fields)?),
            Letter::FixedWindow => Self::Window(Window::load(fields)?),
            Letter::CalendarWindow => Self::Aligned(Aligned::load(fields)?),
            Letter::Concurrency => Self::Slots(Box::new(Slots::load(fields)?)),
        })
    }
}

fn save_as(tag: u8, state: &impl Saved, out: &mut Vec<u8>) {
    out.push(tag);
    state.save(out);
}
