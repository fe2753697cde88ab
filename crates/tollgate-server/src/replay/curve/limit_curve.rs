//! The curve of one limit over all its keys.

use std::hash::BuildHasher;
use std::time::Duration;

use hashbrown::HashTable;
use tollgate::{Algorithm, DefaultHasher, Limit};

use super::key_states::{Candidate, KeyStates};

/// Number of keys below which none are dropped.
const MIN_SWEEP: usize = 4096;

/// Tries one limit at several counts.
#[derive(Debug)]
pub(crate) struct LimitCurve {
    values: Vec<u64>,
    candidates: Vec<Candidate>,
    keys: HashTable<(Box<str>, KeyStates)>,
    hasher: DefaultHasher,
    /// Time after its last request at which a key is full again, in microseconds.
    refill: u64,
    next_sweep: usize,
    requests: u64,
}

/// Share of requests that a limit with this count refuses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CurvePoint {
    pub(crate) count: u64,
    pub(crate) refused: u64,
}

impl LimitCurve {
    /// Creates the curve of `limit` at these counts, in ascending order. Counts that the algorithm does not support are
    /// left out. `None` for a block, which has no count.
    pub(crate) fn new(limit: &Limit, values: &[u64]) -> Option<Self> {
        if limit.algorithm() == Algorithm::Block {
            return None;
        }
        let limits: Vec<(u64, Limit)> =
            values.iter().filter_map(|count| Some((*count, with_count(limit, *count)?))).collect();
        let refill = limits.iter().map(|(_, limit)| refill_micros(limit)).max().unwrap_or_default();
        let candidate = |limit: &Limit| Candidate {
            parameters: limit.parameters().clone(),
            capacity: limit.capacity(),
            refused: 0,
        };
        Some(Self {
            values: limits.iter().map(|(count, _)| *count).collect(),
            candidates: limits.iter().map(|(_, limit)| candidate(limit)).collect(),
            keys: HashTable::new(),
            hasher: DefaultHasher::default(),
            refill,
            next_sweep: MIN_SWEEP,
            requests: 0,
        })
    }

    /// Counts a request of `subject` at the time `at`. Times must not decrease.
    pub(crate) fn take(&mut self, subject: &str, at: u64, cost: u64) {
        self.requests += 1;
        let hash = self.hasher.hash_one(subject);
        if self.keys.len() >= self.next_sweep {
            self.sweep(at);
        }
        let (hasher, refill) = (&self.hasher, self.refill);
        let key = self
            .keys
            .entry(hash, |(known, _)| **known == *subject, |(known, _)| hasher.hash_one(&**known))
            .or_insert_with(|| (subject.into(), KeyStates::new(at)))
            .into_mut();
        let states = &mut key.1;
        if at.saturating_sub(states.last) >= refill {
            states.reset();
        }
        states.take(at, cost, &mut self.candidates);
    }

    /// Drops keys that equal keys which were never used.
    fn sweep(&mut self, at: u64) {
        let refill = self.refill;
        self.keys.retain(|(_, states)| at.saturating_sub(states.last) < refill);
        self.next_sweep = (self.keys.len() * 2).max(MIN_SWEEP);
        let hasher = &self.hasher;
        self.keys.shrink_to(self.next_sweep, |(known, _)| hasher.hash_one(&**known));
    }

    /// Returns the number of requests.
    pub(crate) const fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the refusals at each count, in ascending order of counts.
    pub(crate) fn points(&self) -> impl Iterator<Item = CurvePoint> {
        let pairs = self.values.iter().zip(&self.candidates);
        pairs.map(|(count, candidate)| CurvePoint { count: *count, refused: candidate.refused })
    }
}

/// Returns the limit with another count, and a burst in proportion.
fn with_count(limit: &Limit, count: u64) -> Option<Limit> {
    let mut spec = limit.spec();
    spec.count = Some(count);
    if let Some(burst) = &mut spec.burst {
        let scaled = u128::from(*burst) * u128::from(count) / u128::from(limit.count().max(1));
        *burst = u64::try_from(scaled).ok()?.max(1);
    }
    spec.build().ok()
}

/// Returns an upper bound of the time from the last request of a key until it equals a key that was never used.
fn refill_micros(limit: &Limit) -> u64 {
    let (spec, window) = (limit.spec(), micros(limit.window()));
    if let Some(ttl) = limit.ttl() {
        return micros(ttl);
    }
    if let Some(burst) = spec.burst {
        let refill = u128::from(window) * u128::from(burst);
        let refill = refill.div_ceil(u128::from(limit.count().max(1)));
        return u64::try_from(refill).unwrap_or(u64::MAX);
    }
    match spec.align {
        // A calendar day can be longer than 24 hours.
        Some(_) => window.saturating_add(micros(Duration::from_secs(3 * 3600))),
        // No algorithm uses more than the current window and the one before.
        None => window.saturating_mul(2),
    }
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}
