//! The active policy: what the limiter currently decides by.

use std::sync::Arc;

use crate::algorithm::Algorithm;
use crate::limit::Limit;
use crate::policy::{ActiveOverrides, Overrides, Policy, Rule};
use crate::subject::Subject;

/// A policy with its overrides and the handles that the observer resolved for it.
#[derive(Debug)]
pub struct ActivePolicy<H> {
    pub(super) policy: Arc<Policy>,
    pub(super) handles: Arc<H>,
    pub(super) overrides: ActiveOverrides,
}

impl<H> ActivePolicy<H> {
    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The overrides.
    #[must_use]
    pub const fn overrides(&self) -> &Overrides {
        self.overrides.all()
    }

    /// The limits that an override puts in place of a rule's limits, for the client that `subject` encodes.
    /// `None` without an override.
    #[must_use]
    pub fn override_limits(&self, subject: &Subject, rule: &str) -> Option<Arc<[Limit]>> {
        self.overrides.limits_of(self.policy.rule(rule)?, subject)
    }

    /// The limits that an override puts in place of those of `rule`. `client` is the subject of the client alone, also
    /// if the rule counts by further facts.
    pub(super) fn client_limits(&self, client: &Subject, rule: &Rule) -> Option<Arc<[Limit]>> {
        self.overrides.limits_of_client(rule, client)
    }

    /// The limit that a stored key belongs to: that of the client's override if it has one, else the policy's.
    /// `None` if neither has the limit any more.
    ///
    /// ```
    /// use tollgate::{Algorithm, Limiter, MemoryStore, Policy, Subject};
    ///
    /// let policy = Limiter::new(MemoryStore::new(), Policy::builtin()).active_policy();
    /// let limit = policy.limit(&Subject::of(["c1"]), "default", "60s", Algorithm::SlidingWindow);
    /// assert_eq!(limit.map(|limit| limit.count()), Some(100));
    /// ```
    #[must_use]
    pub fn limit(
        &self,
        subject: &Subject,
        rule: &str,
        name: &str,
        algorithm: Algorithm,
    ) -> Option<Limit> {
        let is_same = |limit: &&Limit| limit.name() == name && limit.algorithm() == algorithm;
        let overridden = self.override_limits(subject, rule);
        let limit = overridden.and_then(|limits| limits.iter().find(is_same).cloned());
        limit.or_else(|| self.policy.limit(rule, name, algorithm).cloned())
    }
}
