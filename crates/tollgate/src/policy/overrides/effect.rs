//! What an override makes of a policy: the rules it changes, and what keeps it from more.

use super::Override;
use super::error::{OverrideError, OverrideErrorKind};
use crate::plan::MAX_TAKES;
use crate::policy::Policy;
use crate::policy::rule::Rule;

/// What an [`Override`] makes of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverrideEffect<'p> {
    /// The rules that it changes, the default included.
    pub rules: Vec<&'p str>,
    /// Why it does not change all that it should, or not for every request.
    pub problem: Option<OverrideError>,
}

impl Override {
    /// What it makes of a policy. One that was right under an earlier policy may have a problem now, and still
    /// changes the rules it can.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Override, OverrideLimit, Policy};
    ///
    /// let own = Override::new(vec![OverrideLimit::new(20, Duration::from_secs(60))])?;
    /// let policy = Policy::builtin();
    /// let effect = own.effect(&policy);
    /// assert_eq!((effect.rules, effect.problem), (vec!["default"], None));
    /// # Ok::<(), tollgate::OverrideError>(())
    /// ```
    #[must_use]
    pub fn effect<'p>(&self, policy: &'p Policy) -> OverrideEffect<'p> {
        let mut problem = self.wrong_rule(policy);
        let mut rules = Vec::new();
        let (mut before, mut after) = (Takes::default(), Takes::default());
        for rule in policy.rules().iter().chain([policy.default_rule()]) {
            let own = if self.is_for(rule) { self.limits_for(rule) } else { Ok(None) };
            let own = own.unwrap_or_else(|error| {
                problem.get_or_insert(error);
                None
            });
            before.add(rule, rule.limits().len());
            after.add(rule, own.as_ref().map_or(rule.limits().len(), Vec::len));
            if own.is_some() {
                rules.push(rule.name());
            }
        }
        let problem = problem
            .or_else(|| after.too_many_since(&before))
            .or_else(|| rules.is_empty().then(changes_nothing));
        OverrideEffect { rules, problem }
    }

    /// The rules of the policy that it changes, where nothing is wrong with it.
    ///
    /// # Errors
    /// It names a rule that there is not or that counts others than clients, it changes nothing, one of its
    /// limits cannot be counted as a rule counts, or there may be too many of them.
    pub fn applies_to<'p>(&self, policy: &'p Policy) -> Result<Vec<&'p str>, OverrideError> {
        let OverrideEffect { rules, problem } = self.effect(policy);
        problem.map_or(Ok(rules), Err)
    }

    fn wrong_rule(&self, policy: &Policy) -> Option<OverrideError> {
        let name = self.rule.as_deref()?;
        let reason = match policy.rule(name) {
            Some(rule) if rule.is_per_client() => return None,
            Some(_) => format!("rule {name:?} is not keyed per client"),
            None => {
                let known = policy.rules().iter().chain([policy.default_rule()]).map(Rule::name);
                let known = known.take(20).collect::<Vec<_>>().join(", ");
                format!("no rule is called {name:?}; there are {known}")
            }
        };
        Some(OverrideError::new(OverrideErrorKind::Rule, reason))
    }
}

fn changes_nothing() -> OverrideError {
    let reason = "no rule of the policy would be changed by it";
    OverrideError::new(OverrideErrorKind::Limits, reason)
}

/// How many takes a request may come to, if every rule that continues matches it.
#[derive(Debug, Default)]
struct Takes {
    continuing: usize,
    last: usize,
}

impl Takes {
    fn add(&mut self, rule: &Rule, limits: usize) {
        let takes = limits + rule.next().len();
        if rule.continues() {
            self.continuing += takes;
        } else {
            self.last = self.last.max(takes);
        }
    }

    const fn sum(&self) -> usize {
        self.continuing + self.last
    }

    /// That they are too many, if they have become more.
    fn too_many_since(&self, before: &Self) -> Option<OverrideError> {
        let sum = self.sum();
        (sum > MAX_TAKES && sum > before.sum()).then(|| {
            let reason = format!(
                "with the rules that continue they may add up to {sum} takes, and a request may have \
                 {MAX_TAKES}; give fewer, or name one rule"
            );
            OverrideError::new(OverrideErrorKind::Limits, reason)
        })
    }
}
