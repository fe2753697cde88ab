//! A model of Limitador, written from its documentation, with random limits.
//!
//! All limits of a namespace apply together to the first descriptor of a request, each if its conditions hold and the
//! descriptor has its variables. Without the entry, a condition does not hold. A request that exceeds one limit is not
//! counted. A window opens with the first request.

use std::collections::HashMap;

use tollgate_testkit::random::Random;

use super::{Outcome, quoted};

#[derive(Debug)]
pub(super) struct Limit {
    pub(super) namespace: &'static str,
    max_value: u64,
    seconds: u64,
    conditions: Vec<(&'static str, bool, &'static str)>,
    variables: Vec<&'static str>,
}

pub(super) const KEYS: &[&str] = &["method", "user", "req.path", "k k"];
const VALUES: &[&str] = &["GET", "POST", "*", "a\"b", "é", "x y"];
pub(super) const SENT: &[&str] = &["GET", "POST", "*", "a\"b", "é", "x y", "", "other"];
const NAMESPACES: &[&str] = &["shop", "api*", "sh:op"];

/// Returns random limits, those of one namespace together.
pub(super) fn random_limits(random: &mut Random) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for namespace in NAMESPACES {
        for _ in 0..random.within(0, 5) {
            let limit = Limit::random(namespace, random);
            let is_same = |other: &Limit| {
                let identity = |limit: &Limit| {
                    let (mut conditions, mut variables) =
                        (limit.conditions.clone(), limit.variables.clone());
                    conditions.sort_unstable();
                    variables.sort_unstable();
                    (limit.namespace, limit.seconds, conditions, variables)
                };
                identity(other) == identity(&limit)
            };
            if !limits.iter().any(is_same) {
                limits.push(limit);
            }
        }
    }
    limits
}

/// Writes the limits file.
pub(super) fn yaml(limits: &[Limit], random: &mut Random) -> String {
    if limits.is_empty() {
        return "[]\n".to_owned();
    }
    limits.iter().map(|limit| limit.yaml(random)).collect()
}

impl Limit {
    fn random(namespace: &'static str, random: &mut Random) -> Self {
        let mut conditions = Vec::new();
        for _ in 0..random.within(0, 3) {
            let condition =
                (*random.pick(KEYS).unwrap(), random.one_in(2), *random.pick(VALUES).unwrap());
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
        let variables = KEYS.iter().copied().filter(|_| random.one_in(4)).collect();
        Self {
            namespace,
            max_value: random.within(0, 6),
            seconds: *random.pick(&[1, 10, 60, 3600]).unwrap(),
            conditions,
            variables,
        }
    }

    fn yaml(&self, random: &mut Random) -> String {
        let mut reference = |key: &str| {
            let is_name = key.bytes().all(|byte| byte.is_ascii_alphanumeric());
            match random.within(0, 2) {
                0 if is_name => key.to_owned(),
                1 if is_name => format!("descriptors[0].{key}"),
                _ => format!("descriptors[0]['{key}']"),
            }
        };
        let conditions: Vec<_> = self
            .conditions
            .iter()
            .map(|(key, is_equal, value)| {
                let operator = if *is_equal { "==" } else { "!=" };
                quoted(&format!("{} {operator} '{value}'", reference(key)))
            })
            .collect();
        let variables: Vec<_> = self.variables.iter().map(|key| quoted(&reference(key))).collect();
        format!(
            "- namespace: {}\n  max_value: {}\n  seconds: {}\n  conditions: [{}]\n  variables: [{}]\n",
            quoted(self.namespace),
            self.max_value,
            self.seconds,
            conditions.join(", "),
            variables.join(", ")
        )
    }

    /// Returns the values of the variables if the limit applies to a descriptor with these entries.
    fn applies(&self, entries: &[(&str, &str)]) -> Option<Vec<String>> {
        let value =
            |key: &str| entries.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        let holds = self.conditions.iter().all(|(key, is_equal, expected)| {
            value(key).is_some_and(|value| (value == *expected) == *is_equal)
        });
        let variables = self.variables.iter().map(|key| value(key).map(str::to_owned));
        if holds { variables.collect() } else { None }
    }
}

/// The open windows of all limits: when each opened, and its count.
#[derive(Debug, Default)]
pub(super) struct Model {
    windows: HashMap<(usize, Vec<String>), (u64, u64)>,
}

impl Model {
    pub(super) fn decide(
        &mut self,
        limits: &[Limit],
        namespace: &str,
        entries: &[(&str, &str)],
        cost: u64,
        now: u64,
    ) -> Outcome {
        let applying: Vec<_> = limits
            .iter()
            .enumerate()
            .filter(|(_, limit)| limit.namespace == namespace)
            .filter_map(|(number, limit)| Some((limit, (number, limit.applies(entries)?))))
            .collect();
        if applying.is_empty() {
            return Outcome::NoLimit;
        }
        for (limit, counter) in &applying {
            let is_closed = |(opened, _): &(u64, u64)| opened + limit.seconds * 1_000_000 <= now;
            if self.windows.get(counter).is_some_and(is_closed) {
                self.windows.remove(counter);
            }
        }
        let used = |windows: &HashMap<_, (u64, u64)>, counter| {
            windows.get(counter).map_or(0, |(_, count)| *count)
        };
        let is_allowed = applying.iter().all(|(limit, counter)| {
            limit.max_value > 0 && used(&self.windows, counter) + cost <= limit.max_value
        });
        if is_allowed {
            for (_, counter) in &applying {
                self.windows.entry(counter.clone()).or_insert((now, 0)).1 += cost;
            }
        }
        let remaining = applying.iter().map(|(limit, counter)| {
            (limit.max_value - used(&self.windows, counter), limit.max_value)
        });
        let (remaining, limit) = remaining.min().unwrap();
        Outcome::Limited { is_allowed, limit, remaining }
    }
}
