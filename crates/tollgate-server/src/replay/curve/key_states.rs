//! The states of one key at all counts of a curve.

use tollgate::Timestamp;
use tollgate::algorithm::{Op, Parameters, State};

/// Number of moments that a key keeps before it computes all its states.
const MAX_MOMENTS: usize = 48;

/// One count of a curve.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) parameters: Parameters,
    /// Maximum cost of one take, at least 1. Increases with the count.
    pub(super) capacity: u64,
    pub(super) refused: u64,
}

/// States of a key that is in use. Candidates beyond the end of `states` have not refused it: the cost of all its
/// requests is at most their capacity.
#[derive(Debug, Default)]
pub(super) struct KeyStates {
    pub(super) last: u64,
    cost: u64,
    states: Vec<State>,
    /// All requests since the key was first used: time, cost, and how many in a row. Empty if every candidate has a state.
    moments: Vec<(u64, u64, u32)>,
}

impl KeyStates {
    pub(super) fn new(at: u64) -> Self {
        Self { last: at, ..Self::default() }
    }

    /// Takes `cost` at the time `at` from every candidate and counts the refusals.
    pub(super) fn take(&mut self, at: u64, cost: u64, candidates: &mut [Candidate]) {
        self.cost = self.cost.saturating_add(cost);
        self.last = at;
        while let Some(candidate) = candidates.get(self.states.len())
            && (candidate.capacity < self.cost || self.moments.len() >= MAX_MOMENTS)
        {
            self.states.push(self.state(&candidate.parameters));
        }
        let now = Timestamp::from_micros(at);
        for (state, candidate) in self.states.iter_mut().zip(candidates.iter_mut()) {
            let reply = candidate.parameters.step(state, now, Op::Take { cost });
            candidate.refused += u64::from(!reply.is_allowed());
        }
        if self.states.len() < candidates.len() {
            self.remember(at, cost);
        } else if !self.moments.is_empty() {
            self.moments = Vec::new();
        }
    }

    /// Returns the state of a candidate that has allowed all requests so far.
    fn state(&self, parameters: &Parameters) -> State {
        let mut state = State::Fresh;
        for (at, cost, times) in &self.moments {
            for _ in 0..*times {
                let _ = parameters.step(
                    &mut state,
                    Timestamp::from_micros(*at),
                    Op::Take { cost: *cost },
                );
            }
        }
        state
    }

    fn remember(&mut self, at: u64, cost: u64) {
        match self.moments.last_mut() {
            Some((last, same, times)) if (*last, *same) == (at, cost) && *times < u32::MAX => {
                *times += 1;
            }
            _ => {
                // Most keys make few requests.
                if self.moments.is_empty() {
                    self.moments.reserve_exact(1);
                }
                self.moments.push((at, cost, 1));
            }
        }
    }

    /// Forgets all requests, because every candidate is full again.
    pub(super) fn reset(&mut self) {
        self.cost = 0;
        self.states.clear();
        self.moments.clear();
    }
}
