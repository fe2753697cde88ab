//! Questions the store could not answer: all of them counted, few of them logged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tollgate::{Decision, Source, StoreError, StoreErrorKind};
use tracing::{info, warn};

use super::outage::Failures;

/// How often the store could not answer, and whether it does now.
#[derive(Debug, Default)]
pub(super) struct StoreErrors {
    count: AtomicU64,
    /// Whether it failed since it last answered. While it has not, an answer looks at nothing else.
    is_failing: AtomicBool,
    failures: Mutex<Failures>,
}

impl StoreErrors {
    pub(super) fn note(&self, error: &StoreError) {
        // A cursor that the store did not give is its sender's mistake.
        if error.kind() == StoreErrorKind::Cursor {
            return;
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut failures = self.failures.lock();
        self.is_failing.store(true, Ordering::Relaxed);
        let is_news = failures.failed(error, Instant::now());
        drop(failures);
        if is_news {
            warn!(reason = %error, "the store could not answer; more of this is counted and not logged");
        }
    }

    /// The store has decided, unless the decision needed no store.
    pub(super) fn note_decision(&self, decision: &Decision<'_>) {
        if self.is_failing()
            && decision.source() == Source::Store
            && !decision.statuses().is_empty()
        {
            self.note_answer();
        }
    }

    /// The store has answered.
    pub(super) fn note_answer(&self) {
        if !self.is_failing() {
            return;
        }
        let mut failures = self.failures.lock();
        self.is_failing.store(false, Ordering::Relaxed);
        let over = failures.answered(Instant::now());
        drop(failures);
        if let Some(over) = over {
            let gone_ms = u64::try_from(over.lasted.as_millis()).unwrap_or(u64::MAX);
            info!(gone_ms, errors = over.errors, "store: answers again");
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Why it could not answer, unless it has since.
    pub(super) fn last(&self) -> Option<String> {
        self.failures.lock().last().map(str::to_owned)
    }

    fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use tollgate::Timestamp;

    use super::*;

    #[test]
    fn a_wrong_cursor_is_not_the_stores_failure() {
        let errors = StoreErrors::default();
        errors.note(&StoreError::new(StoreErrorKind::Cursor, "x"));
        assert!(!errors.is_failing());
        errors.note(&StoreError::new(StoreErrorKind::Timeout, "x"));
        errors.note(&StoreError::new(StoreErrorKind::Incompatible, "x"));
        assert_eq!((errors.count(), errors.is_failing()), (2, true));
    }

    #[test]
    fn what_needs_no_store_does_not_show_that_it_answers() {
        let errors = StoreErrors::default();
        errors.note(&StoreError::new(StoreErrorKind::Unavailable, "x"));
        errors.note_decision(&Decision::new(Timestamp::from_micros(0), []));
        assert!(errors.is_failing());
        errors.note_answer();
        assert!(!errors.is_failing());
    }
}
