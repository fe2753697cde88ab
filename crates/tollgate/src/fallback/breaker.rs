//! Circuit breaker: stops calls to a shared store that fails, until a probe succeeds.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::time::{Timestamp, saturating_micros};

/// State of the circuit breaker in front of the shared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// Requests call the shared store.
    Closed,
    /// Requests do not call the shared store: it failed too often.
    Open,
    /// One probe calls the shared store. Requests do not.
    HalfOpen,
}

impl BreakerState {
    /// Returns the name used in responses.
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
    /// Number of consecutive failures that opens it.
    threshold: u32,
    /// Microseconds without a probe after which a request probes.
    open_for: u64,
    state: AtomicU8,
    /// Number of consecutive failures.
    failures: AtomicU32,
    /// Number of times that it opened or closed.
    changes: AtomicU64,
    /// Microseconds.
    opened_at: AtomicU64,
    /// Microseconds.
    probed_at: AtomicU64,
}

/// Number of state changes at the start of a call. The result of a call that started before the last change is
/// ignored: it describes an earlier state of the store.
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
            probed_at: AtomicU64::new(0),
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

    /// Returns the permission for a call that starts now.
    #[inline]
    pub(super) fn permission(&self) -> CallPermission {
        CallPermission(self.changes.load(Ordering::Relaxed))
    }

    /// Records a successful call.
    #[inline]
    pub(super) fn record_success(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Records a failed call. Returns the number of consecutive failures if this one opens the breaker.
    pub(super) fn record_failure(&self, permission: CallPermission, now: Timestamp) -> Option<u32> {
        if permission != self.permission() {
            return None;
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        (failures >= self.threshold && self.open(now)).then_some(failures)
    }

    /// Opens the breaker. Returns false if it is not closed.
    pub(super) fn open(&self, now: Timestamp) -> bool {
        if !self.transition(CLOSED, OPEN) {
            return false;
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.opened_at.store(now.as_micros(), Ordering::Relaxed);
        self.probed_at.store(now.as_micros(), Ordering::Relaxed);
        true
    }

    /// Returns true if the breaker is open and the last probe is old enough that the next request should probe.
    pub(super) fn is_probe_due(&self, now: Timestamp) -> bool {
        let probed_at = self.probed_at.load(Ordering::Relaxed);
        self.state.load(Ordering::Acquire) == OPEN
            && now.as_micros().saturating_sub(probed_at) >= self.open_for
    }

    /// Records the start of a probe.
    pub(super) fn half_open(&self, now: Timestamp) {
        self.probed_at.store(now.as_micros(), Ordering::Relaxed);
        self.transition(OPEN, HALF_OPEN);
    }

    /// Records a failed or abandoned probe. Does nothing if the breaker is closed.
    pub(super) fn reopen(&self) {
        self.transition(HALF_OPEN, OPEN);
    }

    /// Closes the breaker, if nothing changed since `permission`. Returns the time since it opened.
    pub(super) fn close(&self, permission: CallPermission, now: Timestamp) -> Option<Duration> {
        if permission != self.permission() || self.state.swap(CLOSED, Ordering::AcqRel) == CLOSED {
            return None;
        }
        self.failures.store(0, Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Relaxed);
        let opened_at = self.opened_at.load(Ordering::Relaxed);
        Some(Duration::from_micros(now.as_micros().saturating_sub(opened_at)))
    }

    /// Returns true if the state was `from`, and is now `to`.
    fn transition(&self, from: u8, to: u8) -> bool {
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
        breaker.record_failure(breaker.permission(), START)
    }

    fn close(breaker: &Breaker, now: Timestamp) -> Option<Duration> {
        breaker.close(breaker.permission(), now)
    }

    fn open(breaker: &Breaker) {
        assert_eq!([(); 3].map(|()| fail(breaker)), [None, None, Some(3)]);
    }

    #[test]
    fn opens_at_the_threshold_of_consecutive_failures() {
        let breaker = breaker();
        assert_eq!([fail(&breaker), fail(&breaker)], [None, None]);
        breaker.record_success();
        assert_eq!([fail(&breaker), fail(&breaker)], [None, None]);
        assert!(breaker.is_closed());
        assert_eq!(fail(&breaker), Some(3));
        assert_eq!(breaker.state(), BreakerState::Open);
        assert_eq!(fail(&breaker), None, "already open");
    }

    #[test]
    fn failures_from_before_the_last_change_are_ignored() {
        let breaker = breaker();
        let permission = breaker.permission();
        open(&breaker);
        breaker.half_open(START);
        assert_eq!(close(&breaker, START + Duration::from_secs(7)), Some(Duration::from_secs(7)));
        for _ in 0..9 {
            assert_eq!(breaker.record_failure(permission, START), None);
        }
        assert!(breaker.is_closed());
    }

    #[test]
    fn requests_probe_after_open_for_and_again_after_it() {
        let breaker = breaker();
        assert!(!breaker.is_probe_due(START + Duration::from_secs(99)), "closed");
        open(&breaker);
        assert!(!breaker.is_probe_due(START + Duration::from_secs(29)));
        let later = START + Duration::from_secs(30);
        assert!(breaker.is_probe_due(later));
        breaker.half_open(later);
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert!(!breaker.is_probe_due(later + Duration::from_secs(99)), "one probe at a time");
        breaker.reopen();
        assert!(!breaker.is_probe_due(later + Duration::from_secs(29)));
        assert!(breaker.is_probe_due(later + Duration::from_secs(30)));
    }

    #[test]
    fn closes_once() {
        let breaker = breaker();
        assert_eq!(close(&breaker, START), None);
        open(&breaker);
        assert!(close(&breaker, START).is_some());
        assert_eq!(close(&breaker, START), None);
        assert_eq!(fail(&breaker), None, "the failure count starts at zero");
    }

    #[test]
    fn opens_once_without_failures() {
        let breaker = breaker();
        let permission = breaker.permission();
        assert_eq!([breaker.open(START), breaker.open(START)], [true, false]);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(!breaker.is_probe_due(START + Duration::from_secs(29)));
        assert_eq!(breaker.record_failure(permission, START), None);
        assert_eq!(close(&breaker, START + Duration::from_secs(7)), Some(Duration::from_secs(7)));
    }

    #[test]
    fn replies_from_before_the_last_change_do_not_close_it() {
        let breaker = breaker();
        let permission = breaker.permission();
        open(&breaker);
        assert_eq!(breaker.close(permission, START), None);
        assert_eq!(breaker.state(), BreakerState::Open);
    }
}
