//! Flow control of a lane: the number of takes in flight, by the latency of its calls.
//!
//! A plan that is sent too late spends quota for a caller that no longer waits. So the lane sends no more than the
//! server answers in time. Plans beyond that wait unsent, and are shed when their reply could no longer be in time.

use std::time::Duration;

use tokio::time::Instant;

use crate::call::MAX_TAKES;

/// Maximum number of takes in flight.
const MAX_WINDOW: usize = 16 * MAX_TAKES;

/// Number of takes in flight before the latency of the server is known.
const FIRST_WINDOW: usize = 64;

/// Minimum number of takes in flight, however slow the server is.
const MIN_WINDOW: usize = 8;

/// Number of calls for the expected latency.
const RECENT_CALLS: usize = 8;

/// The least latency is that of the current period and of the one before. A period ends only with a call that did not wait
/// for others: during an overload, all calls wait.
const PERIOD: Duration = Duration::from_secs(10);

/// The window of takes in flight, and the latencies that determine it.
#[derive(Debug)]
pub(super) struct Flow {
    window: usize,
    /// The latencies of the last calls. Zero before the first ones.
    latencies: [Duration; RECENT_CALLS],
    next: usize,
    base: BaseLatency,
    shrunk_at: Option<Instant>,
}

impl Default for Flow {
    fn default() -> Self {
        let latencies = [Duration::ZERO; RECENT_CALLS];
        let base = BaseLatency::default();
        Self { window: FIRST_WINDOW, latencies, next: 0, base, shrunk_at: None }
    }
}

impl Flow {
    /// Returns whether a call has ended, so that its latency determines the window.
    pub(super) const fn is_measured(&self) -> bool {
        self.next > 0
    }

    /// Returns the maximum number of takes in flight.
    pub(super) const fn window(&self) -> usize {
        self.window
    }

    /// Returns the time that a plan needs to get its reply in time: the expected latency and a margin, because plans
    /// that waited have no time to spare. A new plan always has enough.
    pub(super) fn needed_time(&self, timeout: Duration) -> Duration {
        (self.expected_latency() + timeout / 4).min(timeout * 7 / 8)
    }

    /// Returns the expected latency. One slow call does not change it.
    fn expected_latency(&self) -> Duration {
        let mut latencies = self.latencies;
        latencies.sort_unstable();
        latencies.iter().rev().nth(1).copied().unwrap_or_default()
    }

    /// Adapts the window to a call that ended now. `in_flight` is the number of takes in flight when it
    /// was sent, including its own.
    ///
    /// A latency far above the least one means that calls wait for each other. A distant server has a high latency, but
    /// it does not depend on the window.
    pub(super) fn record(
        &mut self,
        (sent_at, now): (Instant, Instant),
        in_flight: usize,
        timeout: Duration,
    ) {
        let latency = now.saturating_duration_since(sent_at);
        if let Some(recent) = self.latencies.get_mut(self.next % RECENT_CALLS) {
            *recent = latency;
        }
        self.next = self.next.wrapping_add(1);
        let base = self.base.update(latency, now, in_flight <= MIN_WINDOW);
        let is_queued = latency > timeout / 8 && latency > base * 3 / 2;
        if latency > timeout * 3 / 4 {
            self.shrink(in_flight / 2, sent_at, now);
        } else if is_queued && latency > timeout / 2 {
            self.shrink(in_flight * 3 / 4, sent_at, now);
        } else if !is_queued && in_flight >= self.window / 2 {
            let growth = if latency < timeout / 8 { self.window } else { self.window / 4 };
            self.window = (self.window + growth).min(MAX_WINDOW);
        }
    }

    /// Shrinks the window, unless the call was sent before it last shrank.
    fn shrink(&mut self, to: usize, sent_at: Instant, now: Instant) {
        if self.shrunk_at.is_none_or(|at| sent_at > at) {
            self.window = to.clamp(MIN_WINDOW, self.window.max(MIN_WINDOW));
            self.shrunk_at = Some(now);
        }
    }
}

/// The least latency of the current period and of the one before.
#[derive(Debug, Default)]
struct BaseLatency {
    period: Option<(Instant, Duration)>,
    previous: Option<Duration>,
}

impl BaseLatency {
    /// Adds a latency. `is_alone` if few takes were in flight, so that the call did not wait for others. Returns the least
    /// latency.
    fn update(&mut self, latency: Duration, now: Instant, is_alone: bool) -> Duration {
        let least = match self.period {
            Some((began, least)) if now < began + PERIOD || !is_alone => {
                let least = least.min(latency);
                self.period = Some((began, least));
                least
            }
            ended => {
                self.previous = ended.map(|(_, least)| least);
                self.period = Some((now, latency));
                latency
            }
        };
        self.previous.map_or(least, |previous| previous.min(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(100);

    fn record(flow: &mut Flow, at: Instant, latency: u64, in_flight: usize) {
        flow.record((at, at + Duration::from_millis(latency)), in_flight, TIMEOUT);
    }

    #[test]
    fn slow_calls_shrink_the_window_once_per_round_trip() {
        let (mut flow, start) = (Flow::default(), Instant::now());
        assert_eq!(flow.window(), FIRST_WINDOW);
        record(&mut flow, start, 90, 40);
        assert_eq!(flow.window(), 20);
        // Sent before the window shrank.
        record(&mut flow, start + Duration::from_millis(10), 90, 40);
        assert_eq!(flow.window(), 20);
        record(&mut flow, start + Duration::from_millis(95), 90, 10);
        assert_eq!(flow.window(), MIN_WINDOW);
    }

    #[test]
    fn fast_calls_grow_the_window_that_limits_them() {
        let (mut flow, start) = (Flow::default(), Instant::now());
        record(&mut flow, start, 1, 10);
        assert_eq!(flow.window(), FIRST_WINDOW, "few takes do not need a larger window");
        record(&mut flow, start, 1, FIRST_WINDOW);
        assert_eq!(flow.window(), 2 * FIRST_WINDOW);
        record(&mut flow, start, 40, 2 * FIRST_WINDOW);
        assert_eq!(flow.window(), 2 * FIRST_WINDOW, "calls wait for each other");
        record(&mut flow, start, 60, 2 * FIRST_WINDOW);
        assert_eq!(flow.window(), 96);
        (0..50).for_each(|_| record(&mut flow, start, 1, MAX_WINDOW));
        assert_eq!(flow.window(), MAX_WINDOW);
    }

    #[test]
    fn distant_server_gets_a_large_window() {
        let (mut flow, start) = (Flow::default(), Instant::now());
        (0..50).for_each(|_| record(&mut flow, start, 60, MAX_WINDOW));
        assert_eq!(flow.window(), MAX_WINDOW);
    }

    #[test]
    fn one_slow_call_does_not_change_the_expected_latency() {
        let (mut flow, start) = (Flow::default(), Instant::now());
        assert_eq!(flow.expected_latency(), Duration::ZERO);
        (0..RECENT_CALLS).for_each(|_| record(&mut flow, start, 2, 1));
        record(&mut flow, start, 99, 1);
        assert_eq!(flow.expected_latency(), Duration::from_millis(2));
        record(&mut flow, start, 80, 1);
        assert_eq!(flow.expected_latency(), Duration::from_millis(80));
    }

    /// A server that decides 2 takes per millisecond gets as many as the window permits for two minutes.
    #[test]
    fn latency_does_not_grow_during_a_long_overload() {
        let (mut flow, start) = (Flow::default(), Instant::now());
        let mut now = start;
        while now < start + Duration::from_secs(120) {
            let in_flight = flow.window();
            let latency = u64::try_from(in_flight / 2).unwrap();
            assert!(latency <= 60, "{latency} ms after {:?}", now - start);
            record(&mut flow, now, latency, in_flight);
            now += Duration::from_millis(latency);
        }
    }

    #[test]
    fn server_that_becomes_distant_gets_a_large_window_again() {
        let (mut flow, start) = (Flow::default(), Instant::now());
        record(&mut flow, start, 1, 1);
        let mut now = start + 2 * PERIOD;
        while now < start + 5 * PERIOD {
            let in_flight = flow.window();
            record(&mut flow, now, 60, in_flight);
            now += Duration::from_millis(60);
        }
        assert_eq!(flow.window(), MAX_WINDOW);
    }
}
