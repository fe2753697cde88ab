//! Questions the store could not answer: all of them counted, few of them logged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tollgate::{StoreError, StoreErrorKind};
use tracing::warn;

/// A lost store fails every request. The log has it once in so long.
const SILENCE: Duration = Duration::from_secs(300);

/// How often the store could not answer.
#[derive(Debug, Default)]
pub(super) struct StoreErrors {
    count: AtomicU64,
    told: Mutex<Option<Instant>>,
}

impl StoreErrors {
    pub(super) fn note(&self, error: &StoreError) {
        // A cursor that the store did not give is its sender's mistake.
        if error.kind() == StoreErrorKind::Cursor {
            return;
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        if self.is_news(Instant::now()) {
            warn!(reason = %error, "the store could not answer; more of this is counted and not logged");
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn is_news(&self, now: Instant) -> bool {
        let mut told = self.told.lock();
        let is_news = told.is_none_or(|told| now.duration_since(told) >= SILENCE);
        if is_news {
            *told = Some(now);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_store_is_news_once_in_a_while() {
        let (errors, now) = (StoreErrors::default(), Instant::now());
        assert!(errors.is_news(now));
        assert!(!errors.is_news(now + SILENCE / 2));
        assert!(errors.is_news(now + SILENCE));
        assert!(!errors.is_news(now + SILENCE + SILENCE / 2));
    }

    #[test]
    fn a_wrong_cursor_is_not_the_stores_failure() {
        let errors = StoreErrors::default();
        errors.note(&StoreError::new(StoreErrorKind::Cursor, "x"));
        errors.note(&StoreError::new(StoreErrorKind::Timeout, "x"));
        errors.note(&StoreError::new(StoreErrorKind::Incompatible, "x"));
        assert_eq!(errors.count(), 2);
    }
}
