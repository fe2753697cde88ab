//! The counters of one client, and their stats.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde::Serialize;
use tollgate::policy::{Condition, Rule, RuleMode};
use tollgate::{ActivePolicy, Key, Limit, Listing, Observer, Subject, rounding};

use crate::api::Service;
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::node::NodeContext;
use crate::node::overrides::{CLIENT, Client, TENANT};
#[cfg(test)]
use crate::reference_tests::names;
use crate::store::{KeyListing, KeySelection};
use crate::wire::decision::LimitNumbers;

/// Maximum time to search the store for counters of a client, for stats.
const STATS_SEARCH_TIMEOUT: Duration = Duration::from_secs(2);
const PAGE_SIZE: usize = 1000;
/// Maximum number of counters of one client.
const MAX_COUNTERS: usize = 10_000;

/// Response of `/admin/external/clients/{id}/stats`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Stats {
    client: String,
    tenant: String,
    /// Whether the client has an override.
    overridden: bool,
    counters: Vec<Counter>,
    /// Whether all counters were found before the search timed out.
    complete: bool,
}

/// A counter of a client.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "ClientCounter", transform = crate::reference_tests::describe_capacity))]
struct Counter {
    key: String,
    rule: String,
    name: String,
    /// What the limit counts.
    #[cfg_attr(test, schemars(with = "names::LimitName"))]
    unit: String,
    #[cfg_attr(test, schemars(with = "names::Algorithm"))]
    algorithm: &'static str,
    count: u64,
    remaining: u64,
    reset_after_ms: u64,
    #[cfg_attr(test, schemars(with = "names::Mode"))]
    mode: &'static str,
    /// Whether an override changes the limits of the rule for this client.
    overridden: bool,
    /// The node that counts the key, if it is not counted in the shared store (distributed off or shadow).
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(flatten)]
    numbers: LimitNumbers,
}

pub(in crate::api) type ServerPolicy = ActivePolicy<<Metrics as Observer>::Handles>;

impl Service {
    /// Returns the counters of a client: of every limit keyed by the client alone, and of other limits with stored state.
    pub(crate) async fn stats(&self, client: &Client) -> Result<Stats, ApiError> {
        stats(self.node(), client).await
    }
}

async fn stats(context: &NodeContext, client: &Client) -> Result<Stats, ApiError> {
    let active = context.limiter().active_policy();
    let found = Counters::of_client(context, &active, client, Keyed::ByClient).await?;
    let mut counters = Vec::with_capacity(found.all.len());
    for (subject, limit) in &found.all {
        let counted_by = context.backend().counted_by(active.policy().rule(limit.rule()));
        let status = context.backend().stats_in(&Key::new(subject, limit), counted_by).await;
        let status = status.map_err(|error| ApiError::from(&error))?;
        counters.push(Counter {
            key: subject.key().into_owned(),
            rule: limit.rule().to_owned(),
            name: limit.name().to_owned(),
            unit: limit.unit().to_string(),
            algorithm: limit.algorithm().as_str(),
            count: status.count(),
            remaining: status.remaining(),
            reset_after_ms: rounding::millis(status.reset_after()),
            mode: mode(&active, limit),
            overridden: active.override_limits(subject, limit.rule()).is_some(),
            node: counted_by.node(context.node_id()),
            numbers: LimitNumbers::with_capacity(limit),
        });
    }
    Ok(Stats {
        client: client.id.clone(),
        tenant: client.tenant.clone(),
        overridden: !active.overrides().get(&client.subject()).is_empty(),
        counters,
        complete: found.is_complete,
    })
}

/// The counters of one client.
#[derive(Debug)]
pub(in crate::api) struct Counters {
    pub(in crate::api) all: Vec<(Subject, Limit)>,
    pub(in crate::api) is_complete: bool,
}

/// Which counters belong to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Keyed {
    /// Those of rules keyed by the fact `client`, and of inline limits.
    ByClient,
    /// Also those of other rules keyed by one fact, if it has the same value, such as the address of a rule per `ip`.
    ByAnyFact,
}

impl Counters {
    /// Searches the counters that decide requests of this client, for a limited time.
    pub(in crate::api) async fn of_client(
        context: &NodeContext,
        active: &ServerPolicy,
        client: &Client,
        keyed: Keyed,
    ) -> Result<Self, ApiError> {
        let mut found = Self::keyed_by_client(active, client);
        let store = (context.backend(), context.node_id());
        let listing = KeyListing::new(store, active.policy(), KeySelection::Deciding);
        found.search(&listing, active, (client, keyed), STATS_SEARCH_TIMEOUT).await?;
        Ok(found)
    }

    /// Returns the counters of rules keyed by the client alone, whose keys need no search.
    pub(super) fn keyed_by_client(active: &ServerPolicy, client: &Client) -> Self {
        let mut counters = Self { all: Vec::new(), is_complete: true };
        let subject = client.subject();
        let policy = active.policy();
        for rule in policy.rules().iter().chain([policy.default_rule()]) {
            if is_keyed_by_client(rule) && can_match(rule, client) {
                counters.add_rule(active, &subject, rule);
            }
        }
        counters
    }

    fn add_rule(&mut self, active: &ServerPolicy, subject: &Subject, rule: &Rule) {
        let overridden = active.override_limits(subject, rule.name());
        let limits = overridden.as_deref().unwrap_or(rule.limits());
        // Limits of the rule that the override replaces may still have counters.
        let replaced = rule.limits().iter().filter(|limit| !contains(limits, limit));
        for limit in limits.iter().chain(replaced).chain(rule.next()) {
            self.all.push((subject.clone(), limit.clone()));
        }
    }

    /// Adds the counters of rules keyed by more facts and of inline limits. They can only be found by listing the
    /// stored keys, which stops at the timeout.
    pub(super) async fn search(
        &mut self,
        keys: &KeyListing<'_>,
        active: &ServerPolicy,
        (client, keyed): (&Client, Keyed),
        timeout: Duration,
    ) -> Result<(), ApiError> {
        let mut seen: HashSet<(String, String)> = self
            .all
            .iter()
            .map(|(subject, limit)| (subject.to_string(), limit.identity()))
            .collect();
        let tenant = Subject::in_tenant(&client.tenant, [""; 0]);
        let mut listing =
            Listing::all().with_prefix(tenant.as_str().to_owned()).with_page_size(PAGE_SIZE);
        let start = Instant::now();
        loop {
            let page = keys.page(&listing).await;
            let page = page.map_err(|error| ApiError::from(&error))?;
            for listed in &page.keys {
                let Some(subject) = Subject::from_escaped(&listed.subject) else { continue };
                if !keyed.matches(&subject, client, active.policy().rule(&listed.rule)) {
                    continue;
                }
                let limit = active.limit(&subject, &listed.rule, &listed.limit, listed.algorithm);
                let Some(limit) = limit.or_else(|| listed.known.clone()) else { continue };
                if seen.insert((listed.subject.clone(), limit.identity())) {
                    self.all.push((subject, limit));
                }
            }
            let Some(next) = page.next else { return Ok(()) };
            if start.elapsed() >= timeout || self.all.len() >= MAX_COUNTERS {
                self.is_complete = false;
                return Ok(());
            }
            listing = listing.after(next);
        }
    }
}

/// Returns whether a rule is keyed by the client alone.
pub(super) fn is_keyed_by_client(rule: &Rule) -> bool {
    matches!(rule.per(), [fact] if fact.as_str() == CLIENT)
}

/// Returns whether the conditions of a rule can match requests of this client.
fn can_match(rule: &Rule, client: &Client) -> bool {
    let holds = |condition: &Condition| match condition.fact().as_str() {
        CLIENT => Some(condition.accepts(client.id.as_bytes())),
        TENANT => Some(condition.accepts(client.tenant.as_bytes())),
        _ => None,
    };
    rule.conditions().iter().all(|condition| holds(condition) != Some(false))
        && rule.exclusions().iter().all(|condition| holds(condition) != Some(true))
}

fn contains(limits: &[Limit], wanted: &Limit) -> bool {
    limits.iter().any(|limit| limit.identity() == wanted.identity())
}

impl Keyed {
    fn matches(self, subject: &Subject, client: &Client, rule: Option<&Rule>) -> bool {
        let has_other_fact =
            || matches!(rule.map(Rule::per), Some([fact]) if fact.as_str() != CLIENT);
        belongs_to(subject, client, rule)
            || (self == Self::ByAnyFact && has_other_fact() && *subject == client.subject())
    }
}

/// Returns whether a subject contains this client: at the position of `client` in `per`, or as the only fact of an
/// inline limit.
fn belongs_to(subject: &Subject, client: &Client, rule: Option<&Rule>) -> bool {
    let position = match rule {
        Some(rule) => rule.per().iter().position(|fact| fact.as_str() == CLIENT),
        None => Some(0),
    };
    let (Some(position), Some(parts)) = (position, Subject::parse(subject.as_str())) else {
        return false;
    };
    let fact = parts.facts.get(position);
    let is_client = fact.is_some_and(|fact| fact.as_deref() == Some(client.id.as_bytes()));
    let has_right_length = rule.is_some() || parts.facts.len() == 1;
    has_right_length && is_client && parts.tenant == client.tenant.as_bytes()
}

/// Returns whether a limit is enforced.
pub(in crate::api) fn mode(active: &ServerPolicy, limit: &Limit) -> &'static str {
    let rule = active.policy().rule(limit.rule());
    let is_shadow =
        rule.is_some_and(|rule| rule.mode() == RuleMode::Shadow || rule.is_on_trial(limit.name()));
    if is_shadow { "shadow" } else { "enforce" }
}
