//! Bounds on admissions that need no oracle.
//!
//! For one key with limit L, in one window: the store admits at most L, and L more for each loss of data and each clock
//! step in that window. A node without the store admits at most its share, ⌈L ÷ N⌉ of the N nodes it knows, however
//! often the store is lost and restored: its local count outlasts the outage. So N nodes with the right node count
//! admit at most N·⌈L ÷ N⌉ ≤ L + N − 1 without the store, and L more with it. Each may admit again what was refunded
//! there.

use std::sync::Arc;

use tollgate::OnStoreLoss;

use super::{Admission, Check, DecidedBy, NodeModel};
use crate::simulator::scenario::refill;
use crate::spec::{Kind, LimitSpec};

/// A time span that a limit bounds.
struct Span<'c> {
    check: &'c Check,
    key: usize,
    from: u64,
    to: u64,
}

impl Check {
    /// Checks the admissions of every key.
    pub(in crate::simulator) fn check_bounds(&mut self, now: u64) {
        for key in 0..self.scenario.keys.len() {
            if let Some(reason) = self.exceeded_bound(key) {
                self.fail(now, || format!("key {key}: {reason}"));
            }
        }
    }

    /// Returns a description of the first exceeded bound of a key.
    fn exceeded_bound(&self, key: usize) -> Option<String> {
        let limited = Arc::clone(&self.scenario.keys[key]);
        if !self.scenario.is_shared(key) {
            return None;
        }
        let mut admissions = self.admissions[key].clone();
        admissions.sort_by_key(|admission| admission.at);
        let is_by_store = |admission: &Admission| admission.by == DecidedBy::Store;
        match limited.distribution.on_store_loss {
            OnStoreLoss::Deny if !admissions.iter().all(is_by_store) => {
                return Some("a `deny` limit admitted without the store".to_owned());
            }
            // Admissions without the store are unbounded.
            OnStoreLoss::Allow => admissions.retain(is_by_store),
            _ => {}
        }
        let spans = spans(&limited.spec, &admissions);
        let mut exceeded = spans.filter_map(|(from, to)| {
            Span { check: self, key, from, to }.exceeded_bound(&limited.spec, &admissions)
        });
        exceeded.next().or_else(|| self.exceeded_slots(key))
    }

    /// Checks that the slots in use never exceed those of the store and of all shares.
    fn exceeded_slots(&self, key: usize) -> Option<String> {
        let limited = &self.scenario.keys[key];
        if limited.spec.algorithm != Kind::Concurrency
            || limited.distribution.on_store_loss == OnStoreLoss::Allow
        {
            return None;
        }
        let slots: Vec<_> = self.held_slots.iter().filter(|held| held.key == key).collect();
        slots.iter().find_map(|newest| {
            let at = newest.from;
            let in_use = slots.iter().filter(|held| held.from <= at && at < held.until);
            let (oldest, sum) = in_use
                .fold((at, 0), |(oldest, sum), held| (oldest.min(held.from), sum + held.cost));
            let span = Span { check: self, key, from: oldest, to: at };
            let max = span.max_by_store(&limited.spec) + span.max_by_nodes(&limited.spec);
            (sum > max).then(|| format!("{sum} slots in use at {at}, at most {max} expected"))
        })
    }
}

/// Returns the time spans in which a limit bounds admissions: first and last moment.
fn spans<'a>(
    spec: &'a LimitSpec,
    admissions: &'a [Admission],
) -> Box<dyn Iterator<Item = (u64, u64)> + 'a> {
    let window = refill(spec);
    let starts = admissions.iter().map(|admission| admission.at);
    match spec.algorithm {
        Kind::TokenBucket => {
            Box::new(starts.clone().enumerate().flat_map(move |(index, from)| {
                starts.clone().skip(index).map(move |to| (from, to))
            }))
        }
        Kind::SlidingWindow | Kind::FixedWindow => {
            Box::new(starts.map(move |from| (from, from + window - 1)))
        }
        Kind::CalendarWindow => {
            Box::new(starts.map(move |at| (at - at % window, at - at % window + window - 1)))
        }
        Kind::SlidingCounter => {
            let window = spec.window_us;
            Box::new(starts.map(move |at| (at - at % window, at - at % window + window - 1)))
        }
        Kind::Concurrency => Box::new(std::iter::empty()),
    }
}

impl Span<'_> {
    fn exceeded_bound(&self, spec: &LimitSpec, admissions: &[Admission]) -> Option<String> {
        let (by_store, by_nodes) = self.sums(admissions);
        let (refunded_by_store, refunded_by_nodes) = self.sums(&self.check.refunds[self.key]);
        let max_by_store = self.max_by_store(spec) + refunded_by_store;
        let max_by_nodes = self.max_by_nodes(spec) + refunded_by_nodes;
        let Self { from, to, .. } = self;
        if by_store > max_by_store {
            return Some(format!(
                "the store admitted {by_store} > {max_by_store} in {from}..={to}"
            ));
        }
        (by_nodes > max_by_nodes).then(|| {
            format!("nodes without the store admitted {by_nodes} > {max_by_nodes} in {from}..={to}")
        })
    }

    /// Returns the costs inside the span: of the store, and of all nodes.
    fn sums(&self, admissions: &[Admission]) -> (u64, u64) {
        let inside = admissions.iter().filter(|one| self.from <= one.at && one.at <= self.to);
        let sum: u64 = inside.clone().map(|one| one.cost).sum();
        let by_store = inside.filter(|one| one.by == DecidedBy::Store);
        let by_store: u64 = by_store.map(|one| one.cost).sum();
        (by_store, sum - by_store)
    }

    /// Returns the maximum that the store admits.
    fn max_by_store(&self, spec: &LimitSpec) -> u64 {
        let disruptions = self.check.disruptions.iter();
        let disruptions = disruptions.filter(|at| self.from <= **at && **at <= self.to);
        let times = 1 + disruptions.count() as u64;
        spec.capacity() * self.windows(spec) * times + self.refilled(spec)
    }

    /// Returns the maximum that all nodes admit without the store.
    fn max_by_nodes(&self, spec: &LimitSpec) -> u64 {
        let max_by_node = |model: &NodeModel| {
            let (share, changes) = model.largest_share(spec, self.from, self.to);
            // When the size of a bucket changes, its used part stays the same, not its tokens.
            let times = if spec.algorithm == Kind::TokenBucket { 1 + changes } else { 1 };
            share.capacity() * self.windows(spec) * times + self.refilled(&share)
        };
        self.check.nodes.iter().map(max_by_node).sum()
    }

    /// Returns the maximum number of windows in the span. A fixed window starts at its first take, so two of them
    /// fit; one that starts with an aged debit ends sooner.
    fn windows(&self, spec: &LimitSpec) -> u64 {
        let aged = self.check.aged_debits.iter();
        let aged = aged.filter(|at| self.from <= **at && **at <= self.to);
        if spec.algorithm == Kind::FixedWindow { 2 + aged.count() as u64 } else { 1 }
    }

    /// Returns the refill of a token bucket in the span.
    fn refilled(&self, spec: &LimitSpec) -> u64 {
        if spec.algorithm == Kind::TokenBucket {
            (self.to - self.from) * spec.count / spec.window_us
        } else {
            0
        }
    }
}
