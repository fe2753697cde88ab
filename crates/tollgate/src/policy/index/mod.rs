//! An index that finds the rules that may match a request without trying all of them.
//!
//! Each rule is indexed under one of its conditions: the one whose values the fewest other rules share. A
//! lookup by the facts of a request returns a few short lists of rules, merged in the order of the policy. These
//! rules *may* match; [`Rule::try_match`] makes the final check. So a lookup can return too many rules but never
//! causes a wrong decision.

mod affixes;
mod lookup_key;
#[cfg(test)]
mod tests;
mod trie;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use ipnet::IpNet;
use smallvec::SmallVec;

use super::condition::Condition;
use super::fact_name::FactName;
use super::normalized_facts::NormalizedFacts;
use super::rule::Rule;
use super::wildcard::Literal;
use crate::net;
use affixes::{Affix, Affixes};
use lookup_key::LookupKey;
use trie::Trie;

/// Rule numbers, ascending. Most lists have one element.
type List = SmallVec<[u32; 4]>;
type Map<K, V> = HashMap<K, V, RandomState>;

/// The rules of a policy, indexed by the facts that they match.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_fact: Map<Box<str>, FactIndex>,
    /// Rules without an indexable condition. They are candidates for every request.
    always: List,
}

/// The rules that are indexed under one fact.
#[derive(Debug)]
struct FactIndex {
    fact: FactName,
    exact: Map<Literal, List>,
    prefixes: Affixes,
    suffixes: Affixes,
    networks: Map<IpNet, List>,
    prefix_lengths: Vec<u8>,
    paths: Trie,
}

impl Index {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut usage: Map<(&str, LookupKey), usize> = Map::default();
        for condition in rules.iter().flat_map(Rule::conditions) {
            for key in LookupKey::of(condition).unwrap_or_default() {
                *usage.entry((condition.fact().as_str(), key)).or_default() += 1;
            }
        }
        let mut index = Self::default();
        for (number, rule) in (0..).zip(rules) {
            match rarest(rule, &usage) {
                Some((condition, keys)) => index.insert(number, condition.fact(), keys),
                None => index.always.push(number),
            }
        }
        index
    }

    fn insert(&mut self, number: u32, fact: &FactName, keys: Vec<LookupKey>) {
        let entry = self.by_fact.entry(fact.as_str().into());
        let fact_index = entry.or_insert_with(|| FactIndex::new(fact.clone()));
        for key in keys {
            fact_index.insert(number, key);
        }
    }

    /// Returns the numbers of the rules that may match, ascending and each once.
    pub(super) fn candidates(&self, facts: &NormalizedFacts<'_, '_>) -> Candidates<'_> {
        let mut found = Candidates { lists: SmallVec::new() };
        found.add(&self.always);
        if !self.by_fact.is_empty() {
            for name in facts.names() {
                if let Some(fact_index) = self.by_fact.get(name) {
                    fact_index.lookup(facts, &mut found);
                }
            }
        }
        found
    }
}

/// Returns the indexable condition whose values the fewest rules share.
fn rarest<'r>(
    rule: &'r Rule,
    usage: &Map<(&str, LookupKey), usize>,
) -> Option<(&'r Condition, Vec<LookupKey>)> {
    let choices = rule.conditions().iter().filter_map(|condition| {
        let keys = LookupKey::of(condition)?;
        let count = |key: &LookupKey| usage.get(&(condition.fact().as_str(), key.clone())).copied();
        let rules = keys.iter().filter_map(count).max().unwrap_or(0);
        let breadth = keys.iter().map(LookupKey::breadth).max().unwrap_or(0);
        Some(((rules, breadth), condition, keys))
    });
    let best = choices.min_by_key(|(rank, _, _)| *rank);
    best.map(|(_, condition, keys)| (condition, keys))
}

impl FactIndex {
    fn new(fact: FactName) -> Self {
        Self {
            fact,
            exact: Map::default(),
            prefixes: Affixes::new(Affix::Prefix),
            suffixes: Affixes::new(Affix::Suffix),
            networks: Map::default(),
            prefix_lengths: Vec::new(),
            paths: Trie::default(),
        }
    }

    fn insert(&mut self, number: u32, key: LookupKey) {
        match key {
            LookupKey::Exact(text) => push(self.exact.entry(text).or_default(), number),
            LookupKey::Prefix(text) => self.prefixes.insert(number, text),
            LookupKey::Suffix(text) => self.suffixes.insert(number, text),
            LookupKey::Path(steps) => self.paths.insert(number, &steps),
            LookupKey::Net(net) => {
                if !self.prefix_lengths.contains(&net.prefix_len()) {
                    self.prefix_lengths.push(net.prefix_len());
                }
                push(self.networks.entry(net).or_default(), number);
            }
        }
    }

    fn lookup<'i>(&'i self, facts: &NormalizedFacts<'_, '_>, found: &mut Candidates<'i>) {
        if self.fact.is_address() {
            let Some(address) = facts.address() else { return };
            for length in &self.prefix_lengths {
                let net = net::network(address, *length);
                found.add(net.and_then(|net| self.networks.get(&net)).map_or(&[], List::as_slice));
            }
            return;
        }
        let Some(value) = facts.get(&self.fact) else { return };
        found.add(self.exact.get(value).map_or(&[], List::as_slice));
        self.prefixes.lookup(value, found);
        self.suffixes.lookup(value, found);
        self.paths.lookup(value, self.fact.syntax(), found);
    }
}

/// Appends a rule number. Rules are inserted in order, and a rule can list the same value twice.
fn push(list: &mut List, number: u32) {
    if list.last() != Some(&number) {
        list.push(number);
    }
}

/// Merges several ascending lists lazily.
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
