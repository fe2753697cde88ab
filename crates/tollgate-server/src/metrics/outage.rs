//! What is remembered of a store's failures: what the log has had already, and what to say when it is over.

use std::time::{Duration, Instant};

use tollgate::{StoreError, StoreErrorKind};

/// A lost store fails every request. The log has each kind of failure once in so long.
const SILENCE: Duration = Duration::from_secs(300);

/// A store that was away for no longer may be one of many brief troubles; one that was is always told.
const BRIEF: Duration = Duration::from_secs(1);

/// The failures up to now.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// When the log last had which kind.
    told: Vec<(StoreErrorKind, Instant)>,
    outage: Option<Outage>,
    last: Option<String>,
}

/// A store that cannot be asked, since its first failure.
#[derive(Debug)]
struct Outage {
    since: Instant,
    errors: u64,
    is_told: bool,
}

/// An outage that the log has had, and that is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Over {
    pub(super) lasted: Duration,
    pub(super) errors: u64,
}

impl Failures {
    /// Notes a failure. Tells whether it belongs in the log.
    pub(super) fn failed(&mut self, error: &StoreError, now: Instant) -> bool {
        self.last = Some(error.to_string());
        let is_overdue = error.is_transient() && self.lengthen(now);
        let is_news = self.is_kind_news(error.kind(), now) || is_overdue;
        if is_news {
            self.told.retain(|(kind, _)| *kind != error.kind());
            self.told.push((error.kind(), now));
        }
        if error.is_transient()
            && let Some(outage) = &mut self.outage
        {
            outage.is_told |= is_news;
        }
        is_news
    }

    /// Notes an answer. Tells of the outage that it ends, if the log has had that one.
    pub(super) fn answered(&mut self, now: Instant) -> Option<Over> {
        self.last = None;
        let outage = self.outage.take().filter(|outage| outage.is_told)?;
        Some(Over { lasted: now.duration_since(outage.since), errors: outage.errors })
    }

    /// Why the store could not answer, unless it has since.
    pub(super) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// One more error of the outage. Tells whether that is no longer brief and the log has not had it.
    fn lengthen(&mut self, now: Instant) -> bool {
        let new = Outage { since: now, errors: 0, is_told: false };
        let outage = self.outage.get_or_insert(new);
        outage.errors += 1;
        !outage.is_told && now.duration_since(outage.since) >= BRIEF
    }

    fn is_kind_news(&self, kind: StoreErrorKind, now: Instant) -> bool {
        let told = self.told.iter().find(|(told, _)| *told == kind);
        told.is_none_or(|(_, at)| now.duration_since(*at) >= SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNAVAILABLE: StoreErrorKind = StoreErrorKind::Unavailable;
    const INCOMPATIBLE: StoreErrorKind = StoreErrorKind::Incompatible;

    fn fail(failures: &mut Failures, kind: StoreErrorKind, now: Instant) -> bool {
        failures.failed(&StoreError::new(kind, format!("{kind:?}")), now)
    }

    #[test]
    fn a_lost_store_is_news_once_in_a_while() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        for (after, is_news) in [
            (Duration::ZERO, true),
            (SILENCE / 2, false),
            (SILENCE, true),
            (SILENCE * 3 / 2, false),
        ] {
            assert_eq!(fail(&mut failures, UNAVAILABLE, now + after), is_news, "{after:?}");
        }
    }

    #[test]
    fn no_kind_hides_another() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        assert!(fail(&mut failures, INCOMPATIBLE, now));
        assert!(fail(&mut failures, UNAVAILABLE, now));
        assert!(fail(&mut failures, StoreErrorKind::Timeout, now));
        assert!(!fail(&mut failures, INCOMPATIBLE, now + SILENCE / 2));
    }

    #[test]
    fn the_end_of_an_outage_is_told_once_with_its_length() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        fail(&mut failures, UNAVAILABLE, now);
        fail(&mut failures, INCOMPATIBLE, now + BRIEF);
        fail(&mut failures, StoreErrorKind::Timeout, now + BRIEF);
        let over = Over { lasted: BRIEF * 2, errors: 2 };
        assert_eq!(failures.answered(now + BRIEF * 2), Some(over));
        assert_eq!(failures.answered(now + BRIEF * 3), None);
    }

    #[test]
    fn a_key_that_cannot_be_read_is_no_outage() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        fail(&mut failures, INCOMPATIBLE, now);
        assert_eq!(failures.answered(now), None);
    }

    #[test]
    fn brief_troubles_are_told_once_and_hide_no_lasting_one() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        assert!(fail(&mut failures, UNAVAILABLE, now));
        assert!(failures.answered(now).is_some());
        assert!(!fail(&mut failures, UNAVAILABLE, now + BRIEF));
        assert_eq!(failures.answered(now + BRIEF), None, "neither its begin nor its end");
        assert!(!fail(&mut failures, UNAVAILABLE, now + BRIEF * 2));
        assert!(fail(&mut failures, UNAVAILABLE, now + BRIEF * 3));
        assert!(!fail(&mut failures, UNAVAILABLE, now + BRIEF * 4));
        assert!(failures.answered(now + BRIEF * 5).is_some());
    }

    #[test]
    fn the_last_failure_is_known_until_an_answer() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        assert_eq!(failures.last(), None);
        fail(&mut failures, UNAVAILABLE, now);
        fail(&mut failures, INCOMPATIBLE, now);
        assert_eq!(failures.last(), Some("Incompatible"));
        failures.answered(now);
        assert_eq!(failures.last(), None);
    }
}
