//! How much passed: bounds that need no oracle, on what callers were told.
//!
//! Of one key with limit L, in one window: the store lets at most L pass, and L more each time it lost its data
//! or its clock stepped in that window. A node alone lets at most its share pass, ⌈L ÷ N⌉ of the N it knows of,
//! however often the store is lost and comes back: its own count outlasts the outage. So of N nodes that know
//! how many they are at most N·⌈L ÷ N⌉ ≤ L + N − 1 pass without the store, and L more with it.

use std::sync::Arc;

use tollgate::{Distributed, OnStoreLoss};

use super::{Admission, By, Check};
use crate::simulator::setting::{Refunds, refill};
use crate::spec::{Kind, LimitSpec};

/// What passed in one stretch of time.
struct Stretch<'c> {
    check: &'c Check,
    from: u64,
    to: u64,
}

impl Check {
    /// Holds what passed to all bounds.
    pub(in crate::simulator) fn holds_bounds(&mut self, now: u64) {
        for key in 0..self.setting.keys.len() {
            if let Some(why) = self.beyond(key) {
                self.fail(now, || format!("key {key}: {why}"));
            }
        }
    }

    fn beyond(&self, key: usize) -> Option<String> {
        let counted = Arc::clone(&self.setting.keys[key]);
        if self.setting.reach(key) != Distributed::On {
            return None;
        }
        let mut admitted = self.admissions[key].clone();
        admitted.sort_by_key(|admission| admission.at);
        match counted.distribution.on_store_loss {
            OnStoreLoss::Deny if admitted.iter().any(|one| one.by != By::Store) => {
                return Some("a limit that denies let pass".to_owned());
            }
            // Nobody counts what passes.
            OnStoreLoss::Allow => admitted.retain(|one| one.by == By::Store),
            _ => {}
        }
        if counted.refunds == Refunds::Sometimes {
            return None;
        }
        let stretches = stretches(&counted.spec, &admitted);
        let mut beyond = stretches.filter_map(|(from, to)| {
            Stretch { check: self, from, to }.beyond(&counted.spec, &admitted)
        });
        beyond.next().or_else(|| self.too_many_in_flight(key))
    }

    /// At no time are more slots in use than those of the store and of all shares.
    fn too_many_in_flight(&self, key: usize) -> Option<String> {
        let counted = &self.setting.keys[key];
        if counted.spec.algorithm != Kind::Concurrency
            || counted.distribution.on_store_loss == OnStoreLoss::Allow
        {
            return None;
        }
        let held: Vec<_> = self.holdings.iter().filter(|holding| holding.key == key).collect();
        held.iter().find_map(|begins| {
            let at = begins.from;
            let in_use = held.iter().filter(|other| other.from <= at && at < other.until);
            let (oldest, sum) = in_use
                .fold((at, 0), |(oldest, sum), other| (oldest.min(other.from), sum + other.cost));
            let stretch = Stretch { check: self, from: oldest, to: at };
            let most = stretch.of_store(&counted.spec) + stretch.of_shares(&counted.spec);
            (sum > most).then(|| format!("{sum} slots in use at {at}, and {most} at most"))
        })
    }
}

/// The stretches of time in which a limit bounds what passes: first and last moment.
fn stretches<'a>(
    spec: &'a LimitSpec,
    admitted: &'a [Admission],
) -> Box<dyn Iterator<Item = (u64, u64)> + 'a> {
    let window = refill(spec);
    let begins = admitted.iter().map(|admission| admission.at);
    match spec.algorithm {
        Kind::TokenBucket => {
            Box::new(begins.clone().enumerate().flat_map(move |(index, from)| {
                begins.clone().skip(index).map(move |to| (from, to))
            }))
        }
        Kind::SlidingWindow | Kind::FixedWindow => {
            Box::new(begins.map(move |from| (from, from + window - 1)))
        }
        Kind::CalendarWindow => {
            Box::new(begins.map(move |at| (at - at % window, at - at % window + window - 1)))
        }
        Kind::SlidingCounter => {
            let window = spec.window_us;
            Box::new(begins.map(move |at| (at - at % window, at - at % window + window - 1)))
        }
        Kind::Concurrency => Box::new(std::iter::empty()),
    }
}

impl Stretch<'_> {
    fn beyond(&self, spec: &LimitSpec, admitted: &[Admission]) -> Option<String> {
        let inside = admitted.iter().filter(|one| self.from <= one.at && one.at <= self.to);
        let by_store = inside.clone().filter(|one| one.by == By::Store);
        let by_store: u64 = by_store.map(|one| one.cost).sum();
        let sum: u64 = inside.map(|one| one.cost).sum();
        let (of_store, of_shares) = (self.of_store(spec), self.of_shares(spec));
        let Self { from, to, .. } = self;
        if by_store > of_store {
            return Some(format!("the store let {by_store} > {of_store} pass in {from}..={to}"));
        }
        let alone = sum - by_store;
        (alone > of_shares)
            .then(|| format!("nodes alone let {alone} > {of_shares} pass in {from}..={to}"))
    }

    /// The most that the store lets pass.
    fn of_store(&self, spec: &LimitSpec) -> u64 {
        let upsets = self.check.upsets.iter();
        let upsets = upsets.filter(|at| self.from <= **at && **at <= self.to).count() as u64;
        spec.capacity() * self.windows(spec) * (1 + upsets) + self.refilled(spec)
    }

    /// The most that all nodes let pass without it.
    fn of_shares(&self, spec: &LimitSpec) -> u64 {
        let of_node = |mirror: &super::Mirror| {
            let (share, changes) = mirror.share(spec, self.from, self.to);
            // Of a bucket the used part stays used when its size changes, and not the tokens.
            let times = if spec.algorithm == Kind::TokenBucket { 1 + changes } else { 1 };
            share.capacity() * self.windows(spec) * times + self.refilled(&share)
        };
        self.check.mirrors.iter().map(of_node).sum()
    }

    /// A window that opens at its first take may end and another begin within any stretch of its length. One
    /// that opens with a debit of the past ends sooner.
    fn windows(&self, spec: &LimitSpec) -> u64 {
        let aged = self.check.aged.iter().filter(|at| self.from <= **at && **at <= self.to);
        if spec.algorithm == Kind::FixedWindow { 2 + aged.count() as u64 } else { 1 }
    }

    /// What a bucket gains meanwhile.
    fn refilled(&self, spec: &LimitSpec) -> u64 {
        match spec.algorithm {
            Kind::TokenBucket => (self.to - self.from) * spec.count / spec.window_us,
            _ => 0,
        }
    }
}
