//! A model of `envoyproxy/ratelimit`, written from its documentation, with random configurations.
//!
//! Each entry of a descriptor selects one node of the next level: the node with the same key and value, else the first
//! with the same key whose value has wildcards and matches, else the one with the key alone. The limit of the last node
//! applies. Values that a wildcard with `share_threshold` matches are counted together.

use std::collections::HashMap;
use std::fmt::Write as _;

use tollgate_testkit::random::Random;

use super::calendar::Unit;
use super::{Outcome, quoted};

#[derive(Debug)]
pub(super) struct Domain {
    pub(super) name: String,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone)]
struct Node {
    key: &'static str,
    value: &'static str,
    limit: Option<Limit>,
    is_shadow: bool,
    is_shared: bool,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    /// `None` is unlimited.
    count: Option<u64>,
    unit: Unit,
}

const KEYS: &[&str] = &["a", "b", "path", "k k"];
/// Values of configurations: exact, with wildcards, and the key alone.
const VALUES: &[&str] = &[
    "", "", "", "x", "y", "/api", "/api/v1", "2F", "é", "x*", "*", "/api*", "*2F", "*/v1", "/*/v*",
    "x**y", "*2*", "\\*",
];
/// Values of requests.
const SENT: &[&str] = &[
    "", "x", "y", "xy", "x2y", "/api", "/api/v1", "/api/v2", "/a/v1", "2F", "/", "2F2F", "é", "\\",
    "22", "z=1/y",
];

impl Domain {
    pub(super) fn random(name: &str, random: &mut Random) -> Self {
        let count = usize::try_from(random.within(1, 4)).unwrap();
        Self { name: name.to_owned(), nodes: level(random, &KEYS[..count], 3) }
    }

    /// Removes `share_threshold` everywhere.
    pub(super) fn remove_sharing(&mut self) {
        self.nodes.iter_mut().for_each(Node::remove_sharing);
    }

    /// Writes the configuration file.
    pub(super) fn yaml(&self) -> String {
        let mut yaml = format!("domain: {}\ndescriptors:\n", quoted(&self.name));
        for node in &self.nodes {
            node.write(&mut yaml, 1);
        }
        if self.nodes.is_empty() {
            yaml.push_str("  []\n");
        }
        yaml
    }

    /// Returns the entries of a random descriptor. Most follow the tree; some values and entries differ.
    pub(super) fn random_entries(&self, random: &mut Random) -> Vec<(&'static str, &'static str)> {
        let (mut nodes, mut entries) = (&self.nodes, Vec::new());
        while let Some(node) = random.pick(nodes) {
            let matching: Vec<_> = SENT
                .iter()
                .copied()
                .filter(|value| node.value.is_empty() || glob(node.value, value))
                .collect();
            let values = if random.one_in(6) { SENT } else { &matching };
            let value = *random.pick(values).or_else(|| random.pick(SENT)).unwrap();
            entries.push((node.key, value));
            nodes = &node.nodes;
            if node.limit.is_some() && !random.one_in(3) {
                break;
            }
        }
        if entries.is_empty() || random.one_in(10) {
            entries.push((*random.pick(KEYS).unwrap(), *random.pick(SENT).unwrap()));
        }
        entries
    }

    /// Returns the node that a descriptor selects, with the counter of its entries.
    fn find(&self, entries: &[(&str, &str)]) -> Option<(&Node, Vec<String>)> {
        let (mut nodes, mut counter) = (&self.nodes, vec![self.name.clone()]);
        let mut found = None;
        for (key, value) in entries {
            let same_key = || nodes.iter().filter(|node| node.key == *key);
            let exact = same_key().find(|node| {
                !node.value.is_empty() && !node.value.contains('*') && node.value == *value
            });
            let wildcard =
                || same_key().find(|node| node.value.contains('*') && glob(node.value, value));
            let alone = || same_key().find(|node| node.value.is_empty());
            let node = exact.or_else(wildcard).or_else(alone)?;
            counter.push((*key).to_owned());
            counter.push(if node.is_shared { node.value } else { value }.to_owned());
            nodes = &node.nodes;
            found = Some(node);
        }
        found.map(|node| (node, counter))
    }
}

fn level(random: &mut Random, keys: &[&'static str], depth: u64) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for _ in 0..random.within(0, 5) {
        let (key, value) = (*random.pick(keys).unwrap(), *random.pick(VALUES).unwrap());
        if nodes.iter().any(|node| (node.key, node.value) == (key, value)) {
            continue;
        }
        let similar = nodes.iter().find(|node| node.key == key && !node.nodes.is_empty());
        let below = match similar {
            // Levels below one key are often alike.
            Some(similar) if random.one_in(2) => changed(&similar.nodes, random, keys),
            _ if depth > 0 && random.one_in(2) => level(random, keys, depth - 1),
            _ => Vec::new(),
        };
        nodes.push(Node {
            key,
            value,
            limit: (!random.one_in(3)).then(|| Limit::random(random)),
            is_shadow: random.one_in(5),
            is_shared: value.contains('*') && random.one_in(3),
            nodes: below,
        });
    }
    nodes
}

/// Returns a copy of the nodes with another limit, or one node more.
fn changed(nodes: &[Node], random: &mut Random, keys: &[&'static str]) -> Vec<Node> {
    let mut nodes = nodes.to_vec();
    let known: Vec<_> = nodes.iter().map(|node| (node.key, node.value)).collect();
    let added = level(random, keys, 0).into_iter().take(1);
    nodes.extend(added.filter(|node| !known.contains(&(node.key, node.value))));
    if let Some(node) = nodes.first_mut()
        && random.one_in(4)
    {
        node.limit = (!random.one_in(2)).then(|| Limit::random(random));
    }
    nodes
}

impl Limit {
    fn random(random: &mut Random) -> Self {
        Self {
            count: (!random.one_in(6)).then(|| random.within(0, 6)),
            unit: *random.pick(&Unit::ALL).unwrap(),
        }
    }
}

impl Node {
    fn remove_sharing(&mut self) {
        self.is_shared = false;
        self.nodes.iter_mut().for_each(Self::remove_sharing);
    }

    fn write(&self, yaml: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        writeln!(yaml, "{indent}- key: {}", quoted(self.key)).unwrap();
        if !self.value.is_empty() {
            writeln!(yaml, "{indent}  value: {}", quoted(self.value)).unwrap();
        }
        match self.limit {
            None => {}
            Some(Limit { count: None, .. }) => {
                writeln!(yaml, "{indent}  rate_limit: {{ unlimited: true }}").unwrap();
            }
            Some(Limit { count: Some(count), unit }) => {
                let unit = unit.name();
                writeln!(
                    yaml,
                    "{indent}  rate_limit: {{ unit: {unit}, requests_per_unit: {count} }}"
                )
                .unwrap();
            }
        }
        for (field, is_set) in
            [("shadow_mode", self.is_shadow), ("share_threshold", self.is_shared)]
        {
            if is_set {
                writeln!(yaml, "{indent}  {field}: true").unwrap();
            }
        }
        if !self.nodes.is_empty() {
            writeln!(yaml, "{indent}  descriptors:").unwrap();
            for node in &self.nodes {
                node.write(yaml, depth + 2);
            }
        }
    }
}

/// Matches text against a pattern in which `*` matches any characters, by trying every length.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            let ends = text.char_indices().map(|(position, _)| position).chain([text.len()]);
            ends.into_iter().any(|position| glob(rest, &text[position..]))
        }),
    }
}

/// The counts of all domains.
#[derive(Debug, Default)]
pub(super) struct Model {
    counts: HashMap<(Vec<String>, Unit, u64), u64>,
}

impl Model {
    /// Decides a descriptor. One over its limit consumes nothing.
    pub(super) fn decide(
        &mut self,
        domains: &[Domain],
        domain: &str,
        entries: &[(&str, &str)],
        cost: u64,
        now: u64,
    ) -> Outcome {
        let domain = domains.iter().find(|known| known.name == domain);
        let found = domain.and_then(|domain| domain.find(entries));
        let Some((node, counter)) = found else { return Outcome::NoLimit };
        let Some(Limit { count, unit }) = node.limit else { return Outcome::NoLimit };
        let Some(limit) = count else { return Outcome::Unlimited };
        let used = self.counts.entry((counter, unit, unit.window(now))).or_default();
        let fits = limit > 0 && *used + cost <= limit;
        if fits {
            *used += cost;
        }
        let remaining = limit - *used;
        Outcome::Limited { is_allowed: fits || node.is_shadow, limit, remaining }
    }
}
