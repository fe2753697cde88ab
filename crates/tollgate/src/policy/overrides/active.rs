//! The overrides in use, with the limits that they produce for the rules of one policy.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use super::collection::ClientOverrides;
use super::{Overrides, applying};
use crate::limit::Limit;
use crate::policy::normalized_facts::NormalizedFacts;
use crate::policy::rule::Rule;
use crate::subject::Subject;

/// The overrides in use. The limits for a rule are built on first use and cached, because each of many
/// overrides is usually needed for only a few of many rules.
#[derive(Debug, Default)]
pub(crate) struct ActiveOverrides {
    by_client: HashMap<Arc<str>, Arc<ClientLimits>, RandomState>,
    all: Overrides,
}

/// The limits that replace those of a rule, by rule index; `None` if no override changes the rule.
type LimitsByRule = HashMap<usize, Option<Arc<[Limit]>>, RandomState>;

/// The overrides of one client, and the limits that they produce.
#[derive(Debug)]
struct ClientLimits {
    source: ClientOverrides,
    by_rule: RwLock<LimitsByRule>,
}

impl ActiveOverrides {
    /// Activates overrides under a new policy, with an empty cache.
    pub(crate) fn of(overrides: Overrides) -> Self {
        Self::default().replaced_by(overrides)
    }

    /// Returns `overrides` under the same policy. Cached limits of unchanged overrides are kept.
    pub(crate) fn replaced_by(&self, overrides: Overrides) -> Self {
        let entry = |(client, source): (&Arc<str>, &ClientOverrides)| {
            let cached = self.by_client.get(client);
            let kept = cached.filter(|cached| Arc::ptr_eq(&cached.source, source)).cloned();
            (Arc::clone(client), kept.unwrap_or_else(|| Arc::new(ClientLimits::new(source))))
        };
        Self { by_client: overrides.iter().map(entry).collect(), all: overrides }
    }

    /// Returns the overrides.
    pub(crate) const fn all(&self) -> &Overrides {
        &self.all
    }

    /// Returns whether no client has an override.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_client.is_empty()
    }

    /// Returns the limits that replace those of `rule` for a request with these facts and this subject.
    #[inline]
    pub(in crate::policy) fn limits(
        &self,
        rule: &Rule,
        subject: &Subject,
        facts: &NormalizedFacts<'_, '_>,
    ) -> Option<Arc<[Limit]>> {
        if self.by_client.is_empty() || !rule.is_per_client() {
            return None;
        }
        if rule.per.len() == 1 {
            return self.limits_of_client(rule, subject);
        }
        let client = rule.per.iter().find(|fact| fact.as_str() == super::CLIENT)?;
        self.limits_of_client(rule, &Subject::in_tenant(facts.tenant(), [facts.get(client)?]))
    }

    /// Returns the limits that replace those of `rule` for a stored subject, whose facts are in the order of
    /// the rule's `per`.
    pub(crate) fn limits_of(&self, rule: &Rule, subject: &Subject) -> Option<Arc<[Limit]>> {
        if self.by_client.is_empty() || !rule.is_per_client() {
            return None;
        }
        let index = rule.per.iter().position(|fact| fact.as_str() == super::CLIENT)?;
        let parts = Subject::parse(subject.as_str())?;
        let client = parts.facts.get(index)?.as_ref()?;
        self.limits_of_client(rule, &Subject::in_tenant(&parts.tenant, [client]))
    }

    /// Returns the limits that replace those of `rule` for a client.
    pub(crate) fn limits_of_client(&self, rule: &Rule, client: &Subject) -> Option<Arc<[Limit]>> {
        self.by_client.get(client.as_str())?.for_rule(rule)
    }
}

impl ClientLimits {
    fn new(source: &ClientOverrides) -> Self {
        Self { source: Arc::clone(source), by_rule: RwLock::default() }
    }

    fn for_rule(&self, rule: &Rule) -> Option<Arc<[Limit]>> {
        if let Some(cached) = self.by_rule.read().get(&rule.index) {
            return cached.clone();
        }
        // If the limits are invalid for the rule, the rule's own limits apply. `Override::effect` reports this
        // when the override is set.
        let limits = applying(&self.source, rule).map(|source| source.limits_for(rule));
        let limits = limits.and_then(|limits| limits.ok().flatten());
        let limits: Option<Arc<[Limit]>> = limits.map(Into::into);
        self.by_rule.write().entry(rule.index).or_insert(limits).clone()
    }
}
