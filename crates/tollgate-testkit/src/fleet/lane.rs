//! The plans of one node for one server: waiting, and in flight.

use std::collections::VecDeque;

use super::request::{Request, Waiter};

/// Concurrent calls, as in the coalescer of `tollgate-redis`.
const CALLS_IN_FLIGHT: usize = 2;

/// Concurrent calls if a plan has waited for a quarter of its time limit, as there.
const URGENT_CALLS: usize = 16;

/// Maximum number of plans in a call, as there.
const MAX_PLANS: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Lane {
    waiting: VecDeque<(Request, Waiter)>,
    /// Times of the waiting requests.
    times: VecDeque<u64>,
    calls: usize,
    plans: usize,
}

impl Lane {
    pub(super) fn push(&mut self, request: Request, waiter: Waiter, now: u64) {
        self.waiting.push_back((request, waiter));
        self.times.push_back(now);
    }

    /// Returns the plans of the next call, if it may be sent now: half of all plans, so that the server processes one
    /// call while the other one is in transit. Returns the time of the first one too.
    pub(super) fn next_call(
        &mut self,
        now: u64,
        timeout: u64,
    ) -> Option<(Vec<Request>, Vec<Waiter>, u64)> {
        let is_urgent = *self.times.front()? + timeout / 4 <= now;
        if self.calls >= if is_urgent { URGENT_CALLS } else { CALLS_IN_FLIGHT } {
            return None;
        }
        let part = match is_urgent {
            true => self.waiting.len(),
            false => (self.plans + self.waiting.len()).div_ceil(CALLS_IN_FLIGHT),
        };
        let plans = part.min(MAX_PLANS).min(self.waiting.len());
        self.calls += 1;
        self.plans += plans;
        let first = self.times.drain(..plans).next()?;
        let (requests, waiters) = self.waiting.drain(..plans).unzip();
        Some((requests, waiters, first))
    }

    pub(super) fn call_ended(&mut self, plans: usize) {
        self.calls -= 1;
        self.plans -= plans;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::request::Operation;

    #[test]
    fn plans_share_a_call_while_two_are_in_flight() {
        let mut lane = Lane::default();
        let push = |lane: &mut Lane| {
            lane.push(Request { key: 0, operation: Operation::Take }, Waiter::None, 7);
        };
        for _ in 0..2 {
            push(&mut lane);
            assert_eq!(lane.next_call(7, 1000).map(|(requests, _, _)| requests.len()), Some(1));
        }
        (0..6).for_each(|_| push(&mut lane));
        assert!(lane.next_call(7, 1000).is_none());
        lane.call_ended(1);
        assert_eq!(lane.next_call(7, 1000).map(|(requests, _, _)| requests.len()), Some(4));
        assert!(lane.next_call(7, 1000).is_none());
        assert_eq!(lane.next_call(257, 1000).map(|(requests, _, _)| requests.len()), Some(2));
    }
}
