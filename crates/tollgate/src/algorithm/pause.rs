//! Pauses: refuse every take from a key for a time, even if quota remains.
//!
//! For example, an outbound limiter pauses when the upstream responds with `Retry-After: 30`.

use std::time::Duration;

use super::saved::Saved;
use super::{Op, Parameters, Reply, State, Wait};
use crate::fields::{Fields, put_longs};
use crate::time::{MAX_PERIOD, Timestamp, saturating_micros};

/// State of a paused key, around the state of its algorithm.
#[derive(Debug, Clone, PartialEq)]
pub struct Paused {
    since: u64,
    until: u64,
    inner: State,
}

pub(super) fn begin(state: &mut State, now: u64, length: Duration) {
    let until = now + saturating_micros(length).min(MAX_PERIOD);
    match state {
        State::Paused(paused) => {
            paused.settle(now);
            paused.until = paused.until.max(until);
            paused.since = now;
        }
        unpaused => {
            let inner = std::mem::take(unpaused);
            *unpaused = State::Paused(Box::new(Paused { since: now, until, inner }));
        }
    }
}

#[cold]
pub(super) fn step(parameters: &Parameters, state: &mut State, now: Timestamp, op: Op) -> Reply {
    let now = now.as_micros();
    let State::Paused(paused) = state else { return parameters.step_unpaused(state, now, op) };
    paused.settle(now);
    let left = paused.until.saturating_sub(now);
    if left > 0 {
        return step_paused(parameters, &mut paused.inner, now, left, op);
    }
    let reply = parameters.step_unpaused(&mut paused.inner, now, op);
    // The first accepted take after the pause removes it from the state.
    let takes = matches!(
        op,
        Op::Take { cost: 1.. } | Op::Hold { cost: 1.., .. } | Op::Lease { amount: 1.., .. }
    );
    if takes && reply.is_allowed() {
        *state = std::mem::take(&mut paused.inner);
    }
    reply
}

fn step_paused(parameters: &Parameters, inner: &mut State, now: u64, left: u64, op: Op) -> Reply {
    let op = match op {
        // A take during a pause takes nothing.
        Op::Take { cost } | Op::Hold { cost, .. } | Op::Lease { amount: cost, .. } => {
            Op::Peek { cost }
        }
        op => op,
    };
    let reply = parameters.step_unpaused(inner, now, op);
    let wait = match op {
        Op::Peek { cost: 1.. } => Wait(reply.wait.0.max(left)),
        _ => reply.wait,
    };
    Reply { wait, remaining: 0, debt: reply.debt, reset_after: reply.reset_after.max(left) }
}

impl Paused {
    /// Moves a pause that starts after `now` to `now`, so that a clock step back does not lengthen it.
    fn settle(&mut self, now: u64) {
        if self.since > now {
            self.until -= self.since - now;
            self.since = now;
        }
    }

    /// Returns the same pause around another state.
    pub(super) fn with_inner(self, inner: State) -> Self {
        Self { inner, ..self }
    }

    pub(super) const fn inner(&self) -> &State {
        &self.inner
    }

    pub(super) const fn inner_mut(&mut self) -> &mut State {
        &mut self.inner
    }

    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.until <= now && self.inner.is_fresh_at(now)
    }
}

/// Excludes the inner state.
impl Saved for Paused {
    fn save(&self, out: &mut Vec<u8>) {
        put_longs(out, [self.since, self.until - self.since]);
    }

    fn load(fields: &mut Fields<'_>) -> Option<Self> {
        let (since, length) = (fields.timestamp()?, fields.length()?);
        Some(Self { since, until: since + length, inner: State::Fresh })
    }
}
