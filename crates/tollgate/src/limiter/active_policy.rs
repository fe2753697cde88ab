//! What requests are decided by now.

use std::sync::Arc;

use crate::limit::Limit;
use crate::limit::identity::Algorithm;
use crate::policy::{ActiveOverrides, Overrides, Policy};
use crate::subject::Subject;

/// A policy in force, what its observer resolved for it, and the exceptions from it.
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

    /// The exceptions from it.
    #[must_use]
    pub const fn overrides(&self) -> &Overrides {
        self.overrides.all()
    }

    /// The client's own limits in place of a rule's, where it has some: of the client that the subject of a counter
    /// is of.
    #[must_use]
    pub fn override_limits(&self, subject: &Subject, rule: &str) -> Option<Arc<[Limit]>> {
        self.overrides.limits_of(self.policy.rule(rule)?, subject)
    }

    /// The limit that a stored key belongs to: its client's own if it has one, else the policy's; none if
    /// neither has it any more.
    ///
    /// ```
    /// use tollgate::{Algorithm, Limiter, MemoryStore, Policy, Subject};
    ///
    /// let current = Limiter::new(MemoryStore::new(), Policy::builtin()).active_policy();
    /// let limit = current.limit(&Subject::of(["c1"]), "default", "60s", Algorithm::SlidingWindow);
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
        let is_it = |limit: &&Limit| limit.name() == name && limit.algorithm() == algorithm;
        let own = self.override_limits(subject, rule);
        let own = own.and_then(|limits| limits.iter().find(is_it).cloned());
        own.or_else(|| self.policy.limit(rule, name, algorithm).cloned())
    }
}
