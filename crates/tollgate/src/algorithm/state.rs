//! What a store keeps for one key.

use std::time::Duration;

use super::fixed_window::{Aligned, Window};
use super::pause::{self, Paused};
use super::sliding_counter::Counter;
use super::sliding_window::Log;
use super::token_bucket::Bucket;
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

    /// Refuses every take from the key for so long, whatever room it has. A shorter pause does not
    /// end a longer one.
    pub fn pause(&mut self, now: Timestamp, length: Duration) {
        pause::begin(self, now.as_micros(), length);
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
            Self::Paused(paused) => paused.is_fresh(now),
        }
    }
}
