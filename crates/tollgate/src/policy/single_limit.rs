//! Policies in which one limit decides every request, and the key of a request in that limit.

use std::fmt;

use crate::limit::Limit;
use crate::plan::Key;
use crate::request::{FactValue, MAX_FACT_LENGTH};
use crate::time::MAX_EXACT;

use super::Policy;
use super::fact_name::{FactName, Meaning};
use super::recycled_subject::RecycledSubject;
use super::rule::{OnMissingFact, Rule, RuleMode};
use super::short_subject::ShortSubject;

/// The limit that decides every request of a policy. See
/// [`Limiter::single_limit`](crate::Limiter::single_limit).
///
/// Such a policy has an unconditional first rule, or only the default rule. That rule enforces one limit per value of
/// one fact, has no trial limits and does not deny requests without the fact. The limit counts requests, no slots and no
/// other unit.
#[derive(Clone, Copy)]
pub struct SingleLimit<'p> {
    limit: &'p Limit,
    fact: &'p FactName,
    cost: u64,
    tenant: &'p str,
}

impl fmt::Debug for SingleLimit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleLimit").field("limit", &self.limit).field("fact", &self.fact).finish()
    }
}

impl<'p> SingleLimit<'p> {
    /// Returns the limit.
    #[must_use]
    pub const fn limit(&self) -> &'p Limit {
        self.limit
    }

    /// Returns the fact that requests are counted by.
    #[must_use]
    pub const fn fact(&self) -> &'p FactName {
        self.fact
    }

    /// Returns the cost to take for a request of this cost.
    #[inline]
    pub(crate) fn cost(&self, cost: u64) -> u64 {
        cost.min(MAX_EXACT).saturating_mul(self.cost).min(MAX_EXACT)
    }

    /// Calls `read` with the key of a request with this tenant and this value of the fact.
    #[inline(always)]
    pub(crate) fn with_key<T>(
        &self,
        tenant: Option<&FactValue<'_>>,
        value: Option<&FactValue<'_>>,
        read: impl FnOnce(&Key<'_>) -> T,
    ) -> T {
        let tenant = tenant.map(FactValue::as_bytes).filter(is_usable);
        let tenant = tenant.unwrap_or(self.tenant.as_bytes());
        let short = value.filter(|_| tenant.is_empty()).and_then(ShortSubject::new);
        let recycled;
        let subject = match short.as_ref().and_then(ShortSubject::as_str) {
            Some(subject) => subject,
            None => {
                let value = value.map(FactValue::as_bytes).filter(is_usable);
                recycled = RecycledSubject::from_optional(tenant, [value].into_iter());
                recycled.as_str()
            }
        };
        read(&Key::private(subject, self.limit))
    }
}

impl Policy {
    /// Returns the limit that decides every request, if there is only one.
    #[inline]
    pub(crate) fn single_limit(&self) -> Option<SingleLimit<'_>> {
        if !self.has_single_limit {
            return None;
        }
        let rule = self.rules.first().unwrap_or(&self.default);
        let (limit, fact) = (rule.limits.first()?, rule.per.first()?);
        Some(SingleLimit { limit, fact, cost: rule.cost, tenant: &self.tenant })
    }
}

/// Returns whether `rule`, which is tried first, decides every request by one limit.
pub(super) fn has_single_limit(rule: &Rule) -> bool {
    let (limits, facts) = (&*rule.limits, &*rule.per);
    rule.is_certain()
        && matches!(limits, [limit] if !limit.algorithm().holds_slots() && limit.unit().is_requests())
        && matches!(facts, [fact] if fact.meaning() == Meaning::Plain)
        && rule.next.is_empty()
        && rule.mode() == RuleMode::Enforce
        && rule.missing() != OnMissingFact::Deny
}

/// Returns whether a value can be a fact. Others count as missing, as in [`Policy::collect_facts`].
fn is_usable(value: &&[u8]) -> bool {
    (1..=MAX_FACT_LENGTH).contains(&value.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::subject::Subject;

    fn policy(text: &str) -> Policy {
        Policy::from_yaml("p.yaml", &format!("version: 1\n{text}"), Policy::builtin_limit())
            .unwrap()
    }

    #[test]
    fn only_one_enforced_limit_per_plain_fact_is_single() {
        let single = [
            "rules: []",
            "rules: [{ name: a, per: [user], limits: [1/s], cost: 3 }]",
            "rules: [{ name: a, limits: [1/s] }, { name: b, match: { path: /b }, limits: [2/s] }]",
        ];
        for text in single {
            assert!(policy(text).single_limit().is_some(), "{text}");
        }
        let others = [
            "rules: [{ name: a, match: { path: /a }, limits: [1/s] }]",
            "rules: [{ name: a, unless: { path: /a }, limits: [1/s] }]",
            "rules: [{ name: a, limits: [1/s, 9/min] }]",
            "rules: [{ name: a, limits: [1/s], continue: true }]",
            "rules: [{ name: a, limits: [1/s], mode: shadow }]",
            "rules: [{ name: a, limits: [1/s], next: { limits: [2/s] } }]",
            "rules: [{ name: a, limits: [1/s], missing: skip }]",
            "rules: [{ name: a, limits: [1/s], missing: deny }]",
            "rules: [{ name: a, limits: [1/s], per: [client, user] }]",
            "rules: [{ name: a, limits: [1/s], per: [] }]",
            "rules: [{ name: a, limits: [1/s], per: [ip] }]",
            "rules: [{ name: a, limits: [1/s], per: [tenant] }]",
            "rules: [{ name: a, unlimited: true }]",
            "rules: [{ name: a, limits: [{ concurrency: 5, ttl: 1min }] }]",
        ];
        for text in others {
            assert!(policy(text).single_limit().is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn subject_is_that_of_the_general_path(
            tenant in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..70)),
            value in proptest::option::of("\\PC{0,20}|[a-z.:/%]{0,70}".prop_map(String::into_bytes)),
        ) {
            let policy = policy("tenant: acme\nrules: [{ name: a, limits: [1/s] }]");
            let single = policy.single_limit().unwrap();
            let facts = [&tenant, &value].map(|fact| fact.as_ref().map(FactValue::from));
            let [tenant_fact, value_fact] = &facts;
            let subject = single.with_key(tenant_fact.as_ref(), value_fact.as_ref(), |key| key.subject().to_owned());
            let tenant = tenant.filter(|tenant| !tenant.is_empty()).unwrap_or(b"acme".to_vec());
            let expected = Subject::from_optional(tenant, [value.filter(|value| !value.is_empty())]);
            prop_assert_eq!(&subject, expected.as_str());
        }
    }
}
