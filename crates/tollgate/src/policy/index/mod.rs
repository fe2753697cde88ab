//! Finding the rules that may match a request without trying all of them.
//!
//! Each rule is filed under one of its conditions: the one whose values the fewest rules share. A
//! request then looks up the facts it has, gets a few short lists of rules, and goes through them in
//! the order of the policy. What is found *may* match; the rule itself is held against the request
//! in one place only, so the index can leave work but cannot make a wrong decision.

mod by_length;
mod slot;
#[cfg(test)]
mod tests;
mod trie;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use ipnet::IpNet;
use smallvec::SmallVec;

use super::condition::Condition;
use super::fact_name::FactName;
use super::rule::Rule;
use super::view::View;
use super::wildcard::Literal;
use crate::net;
use by_length::{ByLength, End};
use slot::Slot;
use trie::Trie;

/// Numbers of rules, ascending. Most lists have one.
type List = SmallVec<[u32; 4]>;
type Map<K, V> = HashMap<K, V, RandomState>;

/// The rules of a policy by what they match.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_fact: Map<Box<str>, FactIndex>,
    /// Rules that no fact leads to.
    always: List,
}

/// The rules that are filed under one fact.
#[derive(Debug)]
struct FactIndex {
    fact: FactName,
    exact: Map<Literal, List>,
    prefixes: ByLength,
    suffixes: ByLength,
    nets: Map<IpNet, List>,
    net_lengths: Vec<u8>,
    paths: Trie,
}

impl Index {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut shared: Map<(&str, Slot), usize> = Map::default();
        for condition in rules.iter().flat_map(Rule::conditions) {
            for slot in Slot::of(condition).unwrap_or_default() {
                *shared.entry((condition.fact().as_str(), slot)).or_default() += 1;
            }
        }
        let mut index = Self::default();
        for (number, rule) in (0..).zip(rules) {
            match rarest(rule, &shared) {
                Some((condition, slots)) => index.file(number, condition.fact(), slots),
                None => index.always.push(number),
            }
        }
        index
    }

    fn file(&mut self, number: u32, fact: &FactName, slots: Vec<Slot>) {
        let place = self.by_fact.entry(fact.as_str().into());
        let place = place.or_insert_with(|| FactIndex::new(fact.clone()));
        for slot in slots {
            place.file(number, slot);
        }
    }

    /// The rules that may match, ascending and each once.
    pub(super) fn candidates(&self, view: &View<'_, '_>) -> Candidates<'_> {
        let mut found = Candidates { lists: SmallVec::new() };
        found.add(&self.always);
        if !self.by_fact.is_empty() {
            for name in view.names() {
                if let Some(place) = self.by_fact.get(name) {
                    place.look_up(view, &mut found);
                }
            }
        }
        found
    }
}

/// The condition whose values the fewest rules share, of those that can be looked up.
fn rarest<'r>(
    rule: &'r Rule,
    shared: &Map<(&str, Slot), usize>,
) -> Option<(&'r Condition, Vec<Slot>)> {
    let choices = rule.conditions().iter().filter_map(|condition| {
        let slots = Slot::of(condition)?;
        let count = |slot: &Slot| shared.get(&(condition.fact().as_str(), slot.clone())).copied();
        let crowd = slots.iter().filter_map(count).max().unwrap_or(0);
        let kind = slots.iter().map(Slot::breadth).max().unwrap_or(0);
        Some(((crowd, kind), condition, slots))
    });
    let best = choices.min_by_key(|(crowd, _, _)| *crowd);
    best.map(|(_, condition, slots)| (condition, slots))
}

impl FactIndex {
    fn new(fact: FactName) -> Self {
        Self {
            fact,
            exact: Map::default(),
            prefixes: ByLength::new(End::Front),
            suffixes: ByLength::new(End::Back),
            nets: Map::default(),
            net_lengths: Vec::new(),
            paths: Trie::default(),
        }
    }

    fn file(&mut self, number: u32, slot: Slot) {
        match slot {
            Slot::Exact(text) => push(self.exact.entry(text).or_default(), number),
            Slot::Prefix(text) => self.prefixes.file(number, text),
            Slot::Suffix(text) => self.suffixes.file(number, text),
            Slot::Path(steps) => self.paths.file(number, &steps),
            Slot::Net(net) => {
                if !self.net_lengths.contains(&net.prefix_len()) {
                    self.net_lengths.push(net.prefix_len());
                }
                push(self.nets.entry(net).or_default(), number);
            }
        }
    }

    fn look_up<'i>(&'i self, view: &View<'_, '_>, found: &mut Candidates<'i>) {
        if self.fact.is_address() {
            let Some(address) = view.address() else { return };
            for length in &self.net_lengths {
                let net = net::network(address, *length);
                found.add(net.and_then(|net| self.nets.get(&net)).map_or(&[], List::as_slice));
            }
            return;
        }
        let Some(value) = view.get(&self.fact) else { return };
        found.add(self.exact.get(value).map_or(&[], List::as_slice));
        self.prefixes.look_up(value, found);
        self.suffixes.look_up(value, found);
        self.paths.look_up(value, found);
    }
}

/// Rules are filed in order, and one value may be written twice in a rule.
fn push(list: &mut List, number: u32) {
    if list.last() != Some(&number) {
        list.push(number);
    }
}

/// Several ascending lists as one, merged as far as it is asked for.
#[derive(Debug)]
pub(super) struct Candidates<'i> {
    lists: SmallVec<[&'i [u32]; 8]>,
}

impl<'i> Candidates<'i> {
    fn add(&mut self, list: &'i [u32]) {
        if !list.is_empty() {
            self.lists.push(list);
        }
    }
}

impl Iterator for Candidates<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let next = *self.lists.iter().filter_map(|list| list.first()).min()?;
        for list in &mut self.lists {
            if let Some((first, rest)) = list.split_first()
                && *first == next
            {
                *list = rest;
            }
        }
        Some(next)
    }
}
