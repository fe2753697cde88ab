//! A new override of one client: the rules that it is for, and the limits that it replaces and keeps.

use super::{ActivePolicy, ClientId};
use crate::algorithm::Algorithm;
use crate::limit::Limit;
use crate::policy::{
    Override, OverrideCandidate, OverrideError, OverrideErrorKind, Overrides, Rule,
};

/// Maximum number of overrides of one client.
const MAX_OVERRIDES: usize = 100;

/// The rules that a new override is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSelection {
    /// The only rule that can count requests of the client. If there are several, or if it is a block, the override is
    /// rejected with the [candidates](OverrideError::candidates).
    Unambiguous,
    /// The rule with this name, which may be a block.
    Named(String),
    /// All rules that can count requests of the client, except blocks.
    All,
}

/// A new override before it is stored: one [`Override`] per rule, and its effect.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{ClientId, Limiter, MemoryStore, Override, OverrideLimit, Policy, RuleSelection};
///
/// let text = "version: 1\nrules:\n  - { name: api, per: [client], limits: [10/min, 100/h] }\n";
/// let policy = Policy::from_yaml("policy.yaml", text, Policy::builtin_limit())?;
/// let limiter = Limiter::new(MemoryStore::new(), policy);
/// let client = ClientId::new("c1", "").ok_or("invalid client")?;
///
/// let raised = Override::new(vec![OverrideLimit::new(50, Duration::from_secs(60))])?;
/// let active = limiter.active_policy();
/// let proposal = client.propose_override(&raised, &RuleSelection::Unambiguous, &active)?;
/// assert_eq!(proposal.overrides[0].rule.as_deref(), Some("api"));
/// let change = &proposal.replaces[0];
/// let texts = [&change.before, &change.after].map(|limit| limit.as_ref().map(ToString::to_string));
/// assert_eq!(texts, [Some("10/min".to_owned()), Some("50/min".to_owned())]);
/// assert_eq!(proposal.keeps[0].to_string(), "100/h");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OverrideProposal {
    /// The overrides to store, one per rule.
    pub overrides: Vec<Override>,
    /// The limits of the client that change.
    pub replaces: Vec<LimitChange>,
    /// The limits of the client in these rules that stay.
    pub keeps: Vec<Limit>,
}

/// A limit of a client before and after a new override.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LimitChange {
    /// The rule.
    pub rule: String,
    /// The name of the limit.
    pub name: String,
    /// The limit that applies now; `None` for an additional limit.
    pub before: Option<Limit>,
    /// The limit that will apply; `None` if it is removed.
    pub after: Option<Limit>,
}

impl OverrideProposal {
    /// Returns the names of the rules that change.
    #[must_use]
    pub fn rules(&self) -> Vec<&str> {
        self.overrides.iter().filter_map(|new| new.rule.as_deref()).collect()
    }
}

impl ClientId {
    /// Returns the overrides to store for `new`, one per selected rule, and the limits that they replace and keep.
    /// Changes nothing.
    ///
    /// # Errors
    /// The rule is ambiguous, does not exist or does not count per client; a limit is invalid in a rule; or a request
    /// could have too many takes.
    pub fn propose_override<H>(
        &self,
        new: &Override,
        selection: &RuleSelection,
        active: &ActivePolicy<H>,
    ) -> Result<OverrideProposal, OverrideError> {
        let (policy, subject) = (active.policy(), self.subject());
        let rules = self.selected_rules(new, selection, active)?;
        let overrides: Vec<Override> =
            rules.iter().map(|rule| new.clone().for_rule(rule.name())).collect();
        let with = |all: Overrides, new: &Override| all.with(&subject, new.clone());
        let after = overrides.iter().fold(active.overrides().clone(), with);
        let all = after.get(&subject);
        if all.len() > MAX_OVERRIDES {
            let reason = format!("a client can have {MAX_OVERRIDES} overrides; remove some");
            return Err(OverrideError::new(OverrideErrorKind::Rule, reason));
        }
        let mut proposal = OverrideProposal { overrides, replaces: Vec::new(), keeps: Vec::new() };
        for (rule, new) in rules.iter().zip(&proposal.overrides) {
            if let Some(problem) = new.effect_among(all, policy).problem {
                return Err(problem);
            }
            let current = active.client_limits(&subject, rule);
            let current = current.as_deref().unwrap_or(rule.limits());
            let limits = new.limits_in(rule)?;
            let (replaces, keeps) = compare(rule, current, &limits);
            proposal.replaces.extend(replaces);
            proposal.keeps.extend(keeps);
        }
        Ok(proposal)
    }

    fn selected_rules<'p, H>(
        &self,
        new: &Override,
        selection: &RuleSelection,
        active: &'p ActivePolicy<H>,
    ) -> Result<Vec<&'p Rule>, OverrideError> {
        let policy = active.policy();
        if let RuleSelection::Named(name) = selection {
            let named = new.clone().for_rule(name.as_str());
            let rules = named.applies_to(policy)?;
            return Ok(rules.into_iter().filter_map(|rule| policy.rule(rule)).collect());
        }
        let rules = self.overridable_rules(policy).into_iter();
        let rules = rules.filter_map(|rule| policy.rule(rule)).filter(|rule| new.can_change(rule));
        let rules: Vec<&Rule> = rules.collect();
        let candidate = |rule: &&Rule| {
            let own_limits = active.client_limits(&self.subject(), rule);
            OverrideCandidate::new(rule, own_limits.as_deref())
        };
        let candidates: Vec<OverrideCandidate> = rules.iter().map(candidate).collect();
        let chosen = choose(selection, &candidates)?;
        Ok(rules
            .into_iter()
            .zip(chosen)
            .filter_map(|(rule, chosen)| chosen.then_some(rule))
            .collect())
    }
}

/// Returns for each candidate whether an override without a named rule is for it. A block is never chosen: it is a ban,
/// of the policy or of an earlier override.
fn choose(
    selection: &RuleSelection,
    candidates: &[OverrideCandidate],
) -> Result<Vec<bool>, OverrideError> {
    let reason = match (selection, candidates) {
        (_, []) => {
            let reason = "no rule of the policy with such a limit counts this client";
            return Err(OverrideError::new(OverrideErrorKind::Rule, reason));
        }
        (RuleSelection::All, all) if all.iter().any(|candidate| !candidate.blocks) => {
            return Ok(all.iter().map(|candidate| !candidate.blocks).collect());
        }
        (RuleSelection::All, _) => {
            "only blocks apply to this client; name the rule of the block to replace".to_owned()
        }
        (_, [only]) if !only.blocks => return Ok(vec![true]),
        (_, [only]) => {
            format!("rule {:?} blocks this client; name it to replace the block", only.rule)
        }
        (_, all) => {
            let names: Vec<&str> = all.iter().map(|candidate| &*candidate.rule).collect();
            let names = names.join(", ");
            format!(
                "several rules can apply to this client; name one of {names}, or select all rules"
            )
        }
    };
    Err(OverrideError::ambiguous(reason, candidates.to_vec()))
}

/// Compares the limits of a client in a rule now with those under a new override.
fn compare(rule: &Rule, current: &[Limit], new: &[Limit]) -> (Vec<LimitChange>, Vec<Limit>) {
    let (mut replaces, mut keeps) = (Vec::new(), Vec::new());
    let has_name =
        |limits: &[Limit], limit: &Limit| limits.iter().any(|other| other.name() == limit.name());
    let mut removed: Vec<&Limit> = current.iter().filter(|limit| !has_name(new, limit)).collect();
    let change = |name: &str, before: Option<&Limit>, after: Option<&Limit>| LimitChange {
        rule: rule.name().to_owned(),
        name: name.to_owned(),
        before: before.cloned(),
        after: after.cloned(),
    };
    for limit in new {
        let before = current.iter().find(|before| before.name() == limit.name());
        match before {
            Some(before) if before == limit && rule.limits().contains(limit) => {
                keeps.push(limit.clone());
            }
            Some(_) => replaces.push(change(limit.name(), before, Some(limit))),
            None => {
                // The first additional limit takes the place of a block.
                let block = removed.iter().position(|old| old.algorithm() == Algorithm::Block);
                let block = block.map(|index| removed.remove(index));
                replaces.push(change(limit.name(), block, Some(limit)));
            }
        }
    }
    replaces.extend(removed.into_iter().map(|limit| change(limit.name(), Some(limit), None)));
    (replaces, keeps)
}
