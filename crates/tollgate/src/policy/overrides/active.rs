//! Overrides in force: what they make of the rules of one policy.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use super::{Override, Overrides};
use crate::limit::Limit;
use crate::policy::rule::Rule;
use crate::policy::view::View;
use crate::subject::Subject;

/// The overrides that requests are decided by, each worked out for a rule when the two first meet: most of
/// many overrides meet few of many rules.
#[derive(Debug, Default)]
pub(crate) struct ActiveOverrides {
    by_client: HashMap<Arc<str>, Arc<Own>, RandomState>,
    all: Overrides,
}

/// What it makes of a rule, by the rule's place; none if it leaves the rule as it is.
type ByRule = HashMap<usize, Option<Arc<[Limit]>>, RandomState>;

#[derive(Debug)]
struct Own {
    given: Arc<Override>,
    by_rule: RwLock<ByRule>,
}

impl ActiveOverrides {
    /// These, under a policy that they meet for the first time.
    pub(crate) fn of(overrides: Overrides) -> Self {
        Self::instead_of(&Self::default(), overrides)
    }

    /// In place of others under the same policy; what was worked out of those that stay is kept.
    pub(crate) fn instead_of(before: &Self, overrides: Overrides) -> Self {
        let own = |(client, given): (&Arc<str>, &Arc<Override>)| {
            let known = before.by_client.get(client);
            let kept = known.filter(|known| Arc::ptr_eq(&known.given, given)).cloned();
            (Arc::clone(client), kept.unwrap_or_else(|| Arc::new(Own::new(given))))
        };
        Self { by_client: overrides.iter().map(own).collect(), all: overrides }
    }

    /// The overrides.
    pub(crate) const fn all(&self) -> &Overrides {
        &self.all
    }

    /// What replaces the limits of a rule for a request whose subject is this.
    #[inline]
    pub(in crate::policy) fn limits(
        &self,
        rule: &Rule,
        subject: &Subject,
        view: &View<'_, '_>,
    ) -> Option<Arc<[Limit]>> {
        if self.by_client.is_empty() || !rule.is_per_client() {
            return None;
        }
        if rule.per.len() == 1 {
            return self.of_client(rule, subject);
        }
        let client = rule.per.iter().find(|fact| fact.as_str() == super::CLIENT)?;
        self.of_client(rule, &Subject::in_tenant(view.tenant(), [view.get(client)?]))
    }

    /// The same for a counter's subject, of which the facts are told by their places.
    pub(crate) fn limits_of(&self, rule: &Rule, subject: &Subject) -> Option<Arc<[Limit]>> {
        if self.by_client.is_empty() || !rule.is_per_client() {
            return None;
        }
        let place = rule.per.iter().position(|fact| fact.as_str() == super::CLIENT)?;
        let parts = Subject::parse(subject.as_str())?;
        let client = parts.facts.get(place)?.as_ref()?;
        self.of_client(rule, &Subject::in_tenant(&parts.tenant, [client]))
    }

    fn of_client(&self, rule: &Rule, client: &Subject) -> Option<Arc<[Limit]>> {
        self.by_client.get(client.as_str())?.for_rule(rule)
    }
}

impl Own {
    fn new(given: &Arc<Override>) -> Self {
        Self { given: Arc::clone(given), by_rule: RwLock::default() }
    }

    fn for_rule(&self, rule: &Rule) -> Option<Arc<[Limit]>> {
        if let Some(known) = self.by_rule.read().get(&rule.index) {
            return known.clone();
        }
        // What a rule cannot count leaves the rule as it is; whoever sets an override is told of it.
        let limits =
            if self.given.is_for(rule) { self.given.limits_for(rule).ok().flatten() } else { None };
        let limits: Option<Arc<[Limit]>> = limits.map(Into::into);
        self.by_rule.write().entry(rule.index).or_insert(limits).clone()
    }
}
