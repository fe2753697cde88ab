//! The effect of an override on a policy: the rules that it changes, and the reason if it cannot change them.

use std::sync::Arc;

use super::error::{OverrideError, OverrideErrorKind};
use super::{Override, applying};
use crate::plan::MAX_TAKES;
use crate::policy::Policy;
use crate::policy::rule::Rule;

/// The effect of an [`Override`] on a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverrideEffect<'p> {
    /// The names of the rules whose limits it replaces, including the default rule.
    pub rules: Vec<&'p str>,
    /// The reason if it cannot change a rule that it should change, or cannot apply to every request.
    pub problem: Option<OverrideError>,
}

impl Override {
    /// Returns the effect on `policy`. An override that was valid under an earlier policy can have a problem
    /// under this one; it still changes the other rules.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Override, OverrideLimit, Policy};
    ///
    /// let raised = Override::new(vec![OverrideLimit::new(20, Duration::from_secs(60))])?;
    /// let policy = Policy::builtin();
    /// let effect = raised.effect(&policy);
    /// assert_eq!((effect.rules, effect.problem), (vec!["default"], None));
    /// # Ok::<(), tollgate::OverrideError>(())
    /// ```
    #[must_use]
    pub fn effect<'p>(&self, policy: &'p Policy) -> OverrideEffect<'p> {
        self.effect_among(&[], policy)
    }

    /// Returns the effect on `policy` for a client that has the overrides `all`, of which this is one.
    #[must_use]
    pub fn effect_among<'p>(&self, all: &[Arc<Self>], policy: &'p Policy) -> OverrideEffect<'p> {
        let mut problem = self.check_rule(policy);
        let mut rules = Vec::new();
        for rule in policy.rules().iter().chain([policy.default_rule()]) {
            if !self.is_for(rule)
                || applying(all, rule).is_some_and(|other| other.rule != self.rule)
            {
                continue;
            }
            match self.limits_for(rule) {
                Ok(None) => {}
                Ok(Some(_)) => rules.push(rule.name()),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        let takes = Takes::of(policy, |rule| match self.is_for(rule) {
            true if applying(all, rule).is_none_or(|other| other.rule == self.rule) => Some(self),
            _ => applying(all, rule).map(|other| &**other),
        });
        let problem = problem
            .or_else(|| takes.too_many(&Takes::of(policy, |_| None)))
            .or_else(|| rules.is_empty().then(changes_nothing));
        OverrideEffect { rules, problem }
    }

    /// Returns the names of the rules whose limits it replaces.
    ///
    /// # Errors
    /// The override names a rule that does not exist or does not count per client, it changes no rule, one of
    /// its limits is invalid in a rule, or a request could have too many takes.
    pub fn applies_to<'p>(&self, policy: &'p Policy) -> Result<Vec<&'p str>, OverrideError> {
        let OverrideEffect { rules, problem } = self.effect(policy);
        problem.map_or(Ok(rules), Err)
    }

    /// Returns an error if the override names a rule that does not exist or does not count per client.
    fn check_rule(&self, policy: &Policy) -> Option<OverrideError> {
        let name = self.rule.as_deref()?;
        let reason = match policy.rule(name) {
            Some(rule) if rule.is_per_client() => return None,
            Some(_) => {
                format!("rule {name:?} does not count per client; name a rule with client in per")
            }
            None => {
                let rules = policy.rules().iter().chain([policy.default_rule()]).map(Rule::name);
                let rules = rules.take(20).collect::<Vec<_>>().join(", ");
                format!("unknown rule {name:?} (rules of the policy: {rules})")
            }
        };
        Some(OverrideError::new(OverrideErrorKind::Rule, reason))
    }
}

fn changes_nothing() -> OverrideError {
    let reason = "the override would not change any rule of the policy";
    OverrideError::new(OverrideErrorKind::Limits, reason)
}

/// The maximum number of takes of a request, if it matches every rule with `continue: true`.
#[derive(Debug, Default)]
struct Takes {
    continuing: usize,
    max_last: usize,
}

impl Takes {
    /// Returns the takes with the override that `find` returns for each rule.
    fn of<'o>(policy: &Policy, find: impl Fn(&Rule) -> Option<&'o Override>) -> Self {
        let mut takes = Self::default();
        for rule in policy.rules().iter().chain([policy.default_rule()]) {
            let limits = find(rule).and_then(|found| found.limits_for(rule).ok().flatten());
            takes.add(rule, limits.map_or(rule.limits().len(), |limits| limits.len()));
        }
        takes
    }

    fn add(&mut self, rule: &Rule, limits: usize) {
        let takes = limits + rule.next().len();
        if rule.continues() {
            self.continuing += takes;
        } else {
            self.max_last = self.max_last.max(takes);
        }
    }

    const fn sum(&self) -> usize {
        self.continuing + self.max_last
    }

    /// Returns an error if the takes exceed the maximum and are more than `before`.
    fn too_many(&self, before: &Self) -> Option<OverrideError> {
        let sum = self.sum();
        (sum > MAX_TAKES && sum > before.sum()).then(|| {
            let reason = format!(
                "with the limits of rules with continue: true, a request could have {sum} takes, and the \
                 maximum is {MAX_TAKES}; set fewer limits, or name one rule"
            );
            OverrideError::new(OverrideErrorKind::Limits, reason)
        })
    }
}
