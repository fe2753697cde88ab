//! Figures of this node that Redis has not confirmed yet. Each count is published exactly once.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use tollgate::{Clock, SystemClock, Timestamp};
use tollgate_redis::{OutgoingFigures, OutgoingInterval};

use super::{CounterSnapshot, NodeReport};
use crate::node::history::outgoing_intervals;

/// Maximum intervals of the history per report. The counts of a long outage cover hundreds, which would occupy Redis for
/// 100 ms; they follow with the next reports.
const MAX_INTERVALS: usize = 16;

/// The figures since the last confirmed report.
#[derive(Debug)]
pub(super) struct PendingFigures {
    /// Counters at the end of the last report that Redis confirmed.
    confirmed: CounterSnapshot,
    /// Figures without a confirmation. They are resent unchanged, so that Redis does not count them twice.
    sent: Option<SentFigures>,
    /// Intervals of the history that no report contains yet.
    unsent_history: VecDeque<OutgoingInterval>,
    last_number: u64,
}

/// Figures that were sent but not confirmed.
#[derive(Debug)]
struct SentFigures {
    number: u64,
    text: String,
    /// Counts per interval of the history, of these figures or of earlier ones.
    history: Vec<OutgoingInterval>,
    /// Counters at the end of the figures.
    end: CounterSnapshot,
}

impl PendingFigures {
    /// Creates figures that start at this snapshot.
    pub(super) const fn new(start: CounterSnapshot) -> Self {
        let unsent_history = VecDeque::new();
        Self { confirmed: start, sent: None, unsent_history, last_number: 0 }
    }

    /// Returns the figures to send: those without a confirmation, or the ones up to `now`, which is the time
    /// `redis_time` by the clock of Redis.
    pub(super) fn next_to_send<'a>(
        &'a mut self,
        (now, redis_time): (CounterSnapshot, Timestamp),
        is_on_trial: impl Fn(&str) -> bool,
        state: &'a str,
        state_lifetime: Duration,
    ) -> Option<OutgoingFigures<'a>> {
        if self.sent.is_none() {
            let report: NodeReport = now.since(&self.confirmed, is_on_trial);
            let text = serde_json::to_string(&report).ok()?;
            // Unique also after a restart of the node.
            self.last_number = SystemClock::new().now().as_micros().max(self.last_number + 1);
            self.unsent_history.extend(outgoing_intervals(&report, redis_time));
            let size = self.unsent_history.len().min(MAX_INTERVALS);
            let history = self.unsent_history.drain(..size).collect();
            self.sent = Some(SentFigures { number: self.last_number, text, history, end: now });
        }
        let sent = self.sent.as_ref()?;
        Some(OutgoingFigures {
            number: sent.number,
            figures: &sent.text,
            history: &sent.history,
            state,
            state_lifetime,
        })
    }

    /// Notes that Redis has confirmed the figures that were sent.
    pub(super) fn confirm(&mut self) {
        if let Some(sent) = mem::take(&mut self.sent) {
            self.confirmed = sent.end;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Instant;

    use super::*;
    use crate::metrics::Tally;

    fn snapshot(at: Instant, allowed: u64) -> CounterSnapshot {
        let mut figures = [0; 18];
        figures[0] = allowed;
        let tally: Tally = serde_json::from_value(serde_json::json!(figures)).expect("18 figures");
        CounterSnapshot { at, tally, rules: BTreeMap::new(), requests: BTreeMap::new(), leased: 0 }
    }

    #[test]
    fn unconfirmed_figures_are_resent_unchanged() {
        let start = Instant::now();
        let mut pending = PendingFigures::new(snapshot(start, 0));
        let send = |pending: &mut PendingFigures, allowed| {
            // A resend may be minutes later.
            let now = (snapshot(start, allowed), Timestamp::from_micros(allowed * 100_000_000));
            let figures = pending.next_to_send(now, |_| false, "", Duration::ZERO);
            let figures = figures.expect("figures");
            let report: NodeReport = serde_json::from_str(figures.figures).expect("a report");
            (figures.number, report.tally.allowed(), figures.history.to_vec())
        };
        let first = send(&mut pending, 3);
        assert_eq!((first.1, first.2.len()), (3, 2), "an interval of each resolution");
        assert_eq!(send(&mut pending, 5), first, "a resend has the same number and figures");
        pending.confirm();
        let second = send(&mut pending, 9);
        assert_eq!(second.1, 6, "the rest follows in the next report");
        assert_ne!(second.0, first.0);
    }

    #[test]
    fn counts_of_a_long_outage_are_sent_in_parts_and_once() {
        let start = Instant::now();
        let end = start + Duration::from_secs(3 * 3600);
        let mut pending = PendingFigures::new(snapshot(start, 0));
        let (mut reports, mut sums) = (0, [0; 2]);
        loop {
            let now = (snapshot(end, 9000), Timestamp::from_micros(1_700_000_000_000_000));
            let figures = pending.next_to_send(now, |_| false, "", Duration::ZERO);
            let history = figures.expect("figures").history.to_vec();
            if history.is_empty() {
                break;
            }
            assert!(history.len() <= MAX_INTERVALS);
            for interval in &history {
                let allowed = interval.counts[0].1[0];
                sums[usize::from(interval.length > Duration::from_secs(10))] += allowed;
            }
            reports += 1;
            pending.confirm();
        }
        assert_eq!(sums, [3000, 9000], "of the last hour, and all");
        assert!((10..40).contains(&reports), "{reports}");
    }
}
