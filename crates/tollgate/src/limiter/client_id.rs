//! A client of a tenant, and the rules that can apply to it.

use crate::policy::{Condition, FactName, OnMissingFact, Policy, Rule};
use crate::request::MAX_FACT_LENGTH;
use crate::subject::Subject;

pub(super) const CLIENT: &str = "client";
const TENANT: &str = "tenant";

/// A client of a tenant: the value of the fact `client`, for overrides, usage and resets.
///
/// ```
/// use tollgate::{ClientId, Policy};
///
/// let client = ClientId::new("c1", Policy::builtin().tenant());
/// assert_eq!(client.map(|client| client.id().to_owned()), Some("c1".to_owned()));
/// assert_eq!(ClientId::new("", ""), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientId {
    pub(super) id: String,
    pub(super) tenant: String,
}

impl ClientId {
    /// Creates the id of a client. Returns `None` if `id` is empty or longer than [`MAX_FACT_LENGTH`].
    pub fn new(id: impl Into<String>, tenant: impl Into<String>) -> Option<Self> {
        let id = id.into();
        let is_valid = (1..=MAX_FACT_LENGTH).contains(&id.len());
        is_valid.then(|| Self { id, tenant: tenant.into() })
    }

    /// The value of the fact `client`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The tenant; empty without one.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the rules that can count requests of this client and that an override can change, the default last. A
    /// rule that matches all requests of the client ends the list; if it continues, it excludes only the default.
    ///
    /// ```
    /// use tollgate::{ClientId, Policy};
    ///
    /// let text = "version: 1\nrules:\n  - { name: api, per: [client], limits: [10/min] }\n";
    /// let policy = Policy::from_yaml("policy.yaml", text, Policy::builtin_limit())?;
    /// let client = ClientId::new("c1", "");
    /// assert_eq!(client.map(|client| client.overridable_rules(&policy)), Some(vec!["api"]));
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    #[must_use]
    pub fn overridable_rules<'p>(&self, policy: &'p Policy) -> Vec<&'p str> {
        let mut names = Vec::new();
        // The default applies only if no other rule matches.
        let mut can_be_default = true;
        for rule in policy.rules() {
            if rule.is_per_client() && can_match(rule, self) {
                names.push(rule.name());
            }
            if always_matches(rule, self) {
                can_be_default = false;
                if !rule.continues() {
                    break;
                }
            }
        }
        let default = policy.default_rule();
        if can_be_default && default.is_per_client() {
            names.push(default.name());
        }
        names
    }

    /// The subject under which overrides of the client are stored.
    #[must_use]
    pub fn subject(&self) -> Subject {
        Subject::in_tenant(&self.tenant, [&self.id])
    }
}

/// Returns whether a rule can match requests of this client.
pub(super) fn can_match(rule: &Rule, client: &ClientId) -> bool {
    rule.conditions().iter().all(|condition| holds(condition, client) != Some(false))
        && rule.exclusions().iter().all(|condition| holds(condition, client) != Some(true))
}

/// Returns whether a rule matches all requests of this client, whatever their other facts are.
fn always_matches(rule: &Rule, client: &ClientId) -> bool {
    let is_known = |fact: &FactName| fact.as_str() == CLIENT;
    rule.conditions().iter().all(|condition| holds(condition, client) == Some(true))
        && rule.exclusions().iter().all(|condition| holds(condition, client) == Some(false))
        && (rule.missing() != OnMissingFact::Skip || rule.per().iter().all(is_known))
}

/// Returns whether a condition holds for all requests of this client, or `None` if that depends on other facts.
fn holds(condition: &Condition, client: &ClientId) -> Option<bool> {
    match condition.fact().as_str() {
        CLIENT => Some(condition.accepts(client.id.as_bytes())),
        TENANT => Some(condition.accepts(client.tenant.as_bytes())),
        _ => None,
    }
}
