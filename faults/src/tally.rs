//! What a load has heard.

use std::time::{Duration, Instant};

use crate::client::Reply;

/// What became of one question.
#[derive(Debug, Clone, Copy)]
pub struct Heard {
    /// Which question it was.
    pub number: u64,
    /// Which node was asked.
    pub node: usize,
    /// When it was to be asked: of who cannot be asked in time, the wait counts too.
    pub due: Instant,
    /// When it was asked.
    pub sent: Instant,
    /// When it was answered.
    pub answered: Instant,
    /// Of HTTP; nothing if there was no answer.
    pub status: Option<u16>,
    /// Whether it may pass.
    pub is_allowed: bool,
    /// Whether somebody else than the store has answered.
    pub is_degraded: bool,
}

impl Heard {
    /// How long it took.
    pub fn took(&self) -> Duration {
        self.answered.saturating_duration_since(self.due)
    }

    pub(crate) fn of(&mut self, reply: &Reply) {
        self.status = Some(reply.status);
        self.is_allowed = reply.is_allowed();
        self.is_degraded = reply.is_degraded();
    }

    fn is_failed(&self) -> bool {
        self.status.is_none_or(|status| status >= 500)
    }
}

/// All that was heard, in the order of the questions.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    heard: Vec<Heard>,
}

impl Tally {
    pub(crate) fn new(mut heard: Vec<Heard>) -> Self {
        heard.sort_by_key(|heard| heard.due);
        Self { heard }
    }

    /// Everything.
    pub fn heard(&self) -> &[Heard] {
        &self.heard
    }

    /// Those of which this is so.
    #[must_use]
    pub fn only(&self, is_so: impl Fn(&Heard) -> bool) -> Self {
        Self { heard: self.heard.iter().copied().filter(|heard| is_so(heard)).collect() }
    }

    /// Those that were due within a span.
    #[must_use]
    pub fn between(&self, begin: Instant, end: Instant) -> Self {
        self.only(|heard| begin <= heard.due && heard.due < end)
    }

    /// How many questions.
    pub fn count(&self) -> usize {
        self.heard.len()
    }

    /// How many passed.
    pub fn admitted(&self) -> usize {
        self.heard.iter().filter(|heard| heard.is_allowed).count()
    }

    /// How many were answered without the store.
    pub fn degraded(&self) -> usize {
        self.heard.iter().filter(|heard| heard.is_degraded).count()
    }

    /// How many got an answer of 500 or more, or none.
    pub fn failed(&self) -> usize {
        self.heard.iter().filter(|heard| heard.is_failed()).count()
    }

    /// How many took longer.
    pub fn slower_than(&self, bound: Duration) -> usize {
        self.heard.iter().filter(|heard| heard.took() > bound).count()
    }

    /// The slowest.
    pub fn slowest(&self) -> Duration {
        self.heard.iter().map(Heard::took).max().unwrap_or_default()
    }

    /// What so many of a thousand did not take longer than.
    pub fn per_mille(&self, part: usize) -> Duration {
        let mut times: Vec<Duration> = self.heard.iter().map(Heard::took).collect();
        times.sort_unstable();
        let place = (times.len() * part / 1000).min(times.len().saturating_sub(1));
        times.get(place).copied().unwrap_or_default()
    }

    /// Asserts that everything was answered with less than 500.
    #[track_caller]
    pub fn assert_answered(&self) {
        let failed = self.heard.iter().find(|heard| heard.is_failed());
        assert_eq!(self.failed(), 0, "of {} questions failed, one as {failed:?}", self.count());
    }

    /// Asserts that one node admitted no more than this within any span of this length. A decision fell
    /// between question and answer, so two that are further apart than that are so for certain.
    #[track_caller]
    pub fn assert_rate(&self, node: usize, count: usize, span: Duration) {
        let of_node = self.heard.iter().filter(|heard| heard.node == node && heard.is_allowed);
        let mut all: Vec<&Heard> = of_node.collect();
        all.sort_by_key(|heard| heard.answered);
        for many in all.windows(count + 1) {
            let first = many.iter().map(|heard| heard.sent).min().expect("there is one");
            let last = many.last().expect("there is one").answered;
            let took = last.saturating_duration_since(first);
            assert!(took >= span, "node {node} admitted {} within {took:?}", count + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Heard, Tally};

    fn at(begin: Instant, millis: u64) -> Heard {
        let sent = begin + Duration::from_millis(millis);
        let (answered, status) = (sent + Duration::from_millis(2), Some(200));
        let (is_allowed, is_degraded) = (true, true);
        Heard { number: 0, node: 0, due: sent, sent, answered, status, is_allowed, is_degraded }
    }

    #[test]
    fn a_rate_is_kept_by_who_admits_no_more_within_any_span() {
        let (begin, span) = (Instant::now(), Duration::from_secs(60));
        let kept = [0, 1, 60_000, 60_001, 120_000].map(|millis| at(begin, millis));
        Tally::new(kept.into()).assert_rate(0, 2, span);
    }

    #[test]
    #[should_panic(expected = "node 0 admitted 3 within 59.9")]
    fn a_rate_is_broken_by_one_more() {
        let (begin, span) = (Instant::now(), Duration::from_secs(60));
        let broken = [0, 100, 60_000, 60_030].map(|millis| at(begin, millis));
        Tally::new(broken.into()).assert_rate(0, 2, span);
    }
}
