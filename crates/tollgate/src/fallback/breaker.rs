//! The circuit breaker: a store that does not answer is not asked, until it may answer again.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::time::{Timestamp, saturating_micros};

/// Whether the store is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// It is.
    Closed,
    /// It is not: it failed too often.
    Open,
    /// Somebody tries whether it answers again. All others do not ask it.
    HalfOpen,
}

impl BreakerState {
    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const HALF_OPEN: u8 = 2;

#[derive(Debug)]
pub(super) struct Breaker {
    threshold: u32,
    /// For how many microseconds it stays open when nobody looks after it.
    open_for: u64,
    state: AtomicU8,
    /// Failures without an answer between them.
    failures: AtomicU32,
    /// How often it has changed.
    changes: AtomicU64,
    opened_at: AtomicU64,
    tried_at: AtomicU64,
}

/// When a question was put: what came of those before the last change says nothing about now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallPermission(u64);

impl Breaker {
    pub(super) fn new(threshold: u32, open_for: Duration) -> Self {
        Self {
            threshold: threshold.max(1),
            open_for: saturating_micros(open_for),
            state: AtomicU8::new(CLOSED),
            failures: AtomicU32::new(0),
            changes: AtomicU64::new(0),
            opened_at: AtomicU64::new(0),
            tried_at: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        match self.state.load(Ordering::Acquire) {
            CLOSED => BreakerState::Closed,
            OPEN => BreakerState::Open,
            _ => BreakerState::HalfOpen,
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) == CLOSED
    }

    /// A question is about to be put.
    #[inline]
    pub(super) fn asked(&self) -> CallPermission {
        CallPermission(self.changes.load(Ordering::Relaxed))
    }

    /// It was answered.
    #[inline]
    pub(super) fn answered(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// It was not. Tells after how many failures this one opens the breaker, if it does.
    pub(super) fn failed(&self, asked: CallPermission, now: Timestamp) -> Option<u32> {
        if asked != self.asked() {
            return None;
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if failures < self.threshold || !self.moves(CLOSED, OPEN) {
            return None;
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.opened_at.store(now.as_micros(), Ordering::Relaxed);
        self.tried_at.store(now.as_micros(), Ordering::Relaxed);
        Some(failures)
    }

    /// Whether it has been open for so long that whoever comes should try the store.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        let tried = self.tried_at.load(Ordering::Relaxed);
        self.state.load(Ordering::Acquire) == OPEN
            && now.as_micros().saturating_sub(tried) >= self.open_for
    }

    /// Somebody tries.
    pub(super) fn try_store(&self, now: Timestamp) {
        self.tried_at.store(now.as_micros(), Ordering::Relaxed);
        self.moves(OPEN, HALF_OPEN);
    }

    /// It did not answer.
    pub(super) fn stay_open(&self) {
        self.moves(HALF_OPEN, OPEN);
    }

    /// It answered, if that was asked since the last change. Tells for how long it had not been asked.
    pub(super) fn close(&self, asked: CallPermission, now: Timestamp) -> Option<Duration> {
        if asked != self.asked() || self.state.swap(CLOSED, Ordering::AcqRel) == CLOSED {
            return None;
        }
        self.failures.store(0, Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Relaxed);
        let opened = self.opened_at.load(Ordering::Relaxed);
        Some(Duration::from_micros(now.as_micros().saturating_sub(opened)))
    }

    fn moves(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_000_000);

    fn breaker() -> Breaker {
        Breaker::new(3, Duration::from_secs(30))
    }

    fn fail(breaker: &Breaker) -> Option<u32> {
        breaker.failed(breaker.asked(), START)
    }

    fn close(breaker: &Breaker, now: Timestamp) -> Option<Duration> {
        breaker.close(breaker.asked(), now)
    }

    fn open(breaker: &Breaker) {
        assert_eq!([(); 3].map(|()| fail(breaker)), [None, None, Some(3)]);
    }

    #[test]
    fn it_opens_at_the_last_of_so_many_failures_in_a_row() {
        let breaker = breaker();
        assert_eq!([fail(&breaker), fail(&breaker)], [None, None]);
        breaker.answered();
        assert_eq!([fail(&breaker), fail(&breaker)], [None, None]);
        assert!(breaker.is_closed());
        assert_eq!(fail(&breaker), Some(3));
        assert_eq!(breaker.state(), BreakerState::Open);
        assert_eq!(fail(&breaker), None, "it is open already");
    }

    #[test]
    fn failures_of_before_the_last_change_do_not_open_it_again() {
        let breaker = breaker();
        let before = breaker.asked();
        open(&breaker);
        breaker.try_store(START);
        assert_eq!(close(&breaker, START + Duration::from_secs(7)), Some(Duration::from_secs(7)));
        for _ in 0..9 {
            assert_eq!(breaker.failed(before, START), None);
        }
        assert!(breaker.is_closed());
    }

    #[test]
    fn whoever_comes_tries_after_a_while_and_again_a_while_later() {
        let breaker = breaker();
        assert!(!breaker.is_due(START + Duration::from_secs(99)), "it is closed");
        open(&breaker);
        assert!(!breaker.is_due(START + Duration::from_secs(29)));
        let later = START + Duration::from_secs(30);
        assert!(breaker.is_due(later));
        breaker.try_store(later);
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert!(!breaker.is_due(later + Duration::from_secs(99)), "one is enough");
        breaker.stay_open();
        assert!(!breaker.is_due(later + Duration::from_secs(29)));
        assert!(breaker.is_due(later + Duration::from_secs(30)));
    }

    #[test]
    fn it_closes_once() {
        let breaker = breaker();
        assert_eq!(close(&breaker, START), None);
        open(&breaker);
        assert!(close(&breaker, START).is_some());
        assert_eq!(close(&breaker, START), None);
        assert_eq!(fail(&breaker), None, "it counts from the beginning");
    }
    #[test]
    fn answers_of_before_the_last_change_do_not_close_it() {
        let breaker = breaker();
        let before = breaker.asked();
        open(&breaker);
        assert_eq!(breaker.close(before, START), None);
        assert_eq!(breaker.state(), BreakerState::Open);
    }
}
