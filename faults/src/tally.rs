//! Results of a load: one record per request.

use std::time::{Duration, Instant};

use crate::client::Reply;
use crate::stage::Stage;

/// The result of one request.
#[derive(Debug, Clone, Copy)]
pub struct RequestResult {
    /// The number of the request.
    pub number: u64,
    /// The index of the node that received it.
    pub node: usize,
    /// The scheduled time of sending. Latency counts from here, so a late send counts too.
    pub due: Instant,
    /// The time of sending.
    pub sent: Instant,
    /// The time of the response.
    pub answered: Instant,
    /// The HTTP status; `None` without a response.
    pub status: Option<u16>,
    /// Whether the request is allowed.
    pub is_allowed: bool,
    /// Whether the decision is degraded.
    pub is_degraded: bool,
    /// Whether the request was shed, and marked so.
    pub is_shed: bool,
}

impl RequestResult {
    /// The result of a request to the first node, until its response is known.
    pub(crate) fn without_response(number: u64, sent: Instant, answered: Instant) -> Self {
        let (status, is_allowed, is_degraded, is_shed) = (None, false, false, false);
        let (node, due) = (0, sent);
        Self { number, node, due, sent, answered, status, is_allowed, is_degraded, is_shed }
    }

    /// The latency, from the scheduled time.
    pub fn took(&self) -> Duration {
        self.answered.saturating_duration_since(self.due)
    }

    pub(crate) fn set_reply(&mut self, reply: &Reply) {
        self.status = Some(reply.status);
        self.is_allowed = reply.is_allowed();
        self.is_degraded = reply.is_degraded();
        self.is_shed = reply.is_shed();
    }

    fn is_failed(&self) -> bool {
        self.status.is_none_or(|status| status >= 500)
    }
}

/// The results of all requests, in the order of their scheduled times.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    results: Vec<RequestResult>,
}

impl Tally {
    pub(crate) fn new(mut results: Vec<RequestResult>) -> Self {
        results.sort_by_key(|result| result.due);
        Self { results }
    }

    /// All results.
    pub fn results(&self) -> &[RequestResult] {
        &self.results
    }

    /// The results that satisfy a predicate.
    #[must_use]
    pub fn only(&self, predicate: impl Fn(&RequestResult) -> bool) -> Self {
        Self { results: self.results.iter().copied().filter(|result| predicate(result)).collect() }
    }

    /// The results of requests scheduled within an interval.
    #[must_use]
    pub fn between(&self, begin: Instant, end: Instant) -> Self {
        self.only(|result| begin <= result.due && result.due < end)
    }

    /// The results of requests that were sent and answered within an interval.
    #[must_use]
    pub fn within(&self, begin: Instant, end: Instant) -> Self {
        self.only(|result| begin <= result.sent && result.answered < end)
    }

    /// The number of requests.
    pub fn count(&self) -> usize {
        self.results.len()
    }

    /// The number of allowed requests.
    pub fn admitted(&self) -> usize {
        self.results.iter().filter(|result| result.is_allowed).count()
    }

    /// The number of degraded decisions.
    pub fn degraded(&self) -> usize {
        self.results.iter().filter(|result| result.is_degraded).count()
    }

    /// The number of shed requests.
    pub fn shed(&self) -> usize {
        self.results.iter().filter(|result| result.is_shed).count()
    }

    /// The number of responses with status 500 or above, or without a response.
    pub fn failed(&self) -> usize {
        self.results.iter().filter(|result| result.is_failed()).count()
    }

    /// The number of requests slower than `bound`.
    pub fn slower_than(&self, bound: Duration) -> usize {
        self.results.iter().filter(|result| result.took() > bound).count()
    }

    /// The highest latency.
    pub fn slowest(&self) -> Duration {
        self.results.iter().map(RequestResult::took).max().unwrap_or_default()
    }

    /// The latency quantile in parts per thousand.
    pub fn per_mille(&self, part: usize) -> Duration {
        let mut times: Vec<Duration> = self.results.iter().map(RequestResult::took).collect();
        times.sort_unstable();
        let place = (times.len() * part / 1000).min(times.len().saturating_sub(1));
        times.get(place).copied().unwrap_or_default()
    }

    /// Asserts that every request has a response below 500.
    #[track_caller]
    pub fn assert_none_failed(&self) {
        let failed = self.results.iter().find(|result| result.is_failed());
        assert!(failed.is_none(), "of {} requests failed: {failed:?}", self.count());
    }

    /// Asserts that every request has a response below 500, or was shed. A node on a busy machine sheds requests that it cannot send to
    /// Redis in time, so the number of those depends on its speed.
    #[track_caller]
    pub fn assert_answered(&self, stage: &Stage) {
        let failures = || self.results.iter().filter(|result| result.is_failed());
        let unexplained = failures().find(|result| !result.is_shed);
        assert!(unexplained.is_none(), "of {} requests failed: {unexplained:?}", self.count());
        let (shed, count) = (failures().count(), self.count());
        stage.check_time(shed == 0, || format!("{shed} of {count} requests were shed"));
    }

    /// Asserts that one node admitted at most `count` requests within any interval of length `span`. A decision is
    /// made between sending and response, so only distances that are certain count.
    #[track_caller]
    pub fn assert_rate(&self, node: usize, count: usize, span: Duration) {
        let of_node = self.results.iter().filter(|result| result.node == node && result.is_allowed);
        let mut all: Vec<&RequestResult> = of_node.collect();
        all.sort_by_key(|result| result.answered);
        for group in all.windows(count + 1) {
            let first = group.iter().map(|result| result.sent).min().expect("groups are not empty");
            let last = group.last().expect("groups are not empty").answered;
            let took = last.saturating_duration_since(first);
            assert!(took >= span, "node {node} admitted {} within {took:?}", count + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{RequestResult, Tally};

    fn at(begin: Instant, millis: u64) -> RequestResult {
        let sent = begin + Duration::from_millis(millis);
        let (answered, status) = (sent + Duration::from_millis(2), Some(200));
        let (is_allowed, is_degraded, is_shed) = (true, true, false);
        RequestResult {
            number: 0,
            node: 0,
            due: sent,
            sent,
            answered,
            status,
            is_allowed,
            is_degraded,
            is_shed,
        }
    }

    #[test]
    fn rate_holds_with_at_most_count_in_any_span() {
        let (begin, span) = (Instant::now(), Duration::from_secs(60));
        let kept = [0, 1, 60_000, 60_001, 120_000].map(|millis| at(begin, millis));
        Tally::new(kept.into()).assert_rate(0, 2, span);
    }

    #[test]
    #[should_panic(expected = "node 0 admitted 3 within 59.9")]
    fn rate_fails_with_one_more() {
        let (begin, span) = (Instant::now(), Duration::from_secs(60));
        let broken = [0, 100, 60_000, 60_030].map(|millis| at(begin, millis));
        Tally::new(broken.into()).assert_rate(0, 2, span);
    }
}
