//! Usage of one client: its counters in the store, and their reset.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::client_id::{CLIENT, ClientId, can_match};
use super::{ActivePolicy, Limiter, Observer};
use crate::limit::{INLINE_RULE, Limit};
use crate::plan::Key;
use crate::policy::{Policy, Rule, RuleMode};
use crate::store::{Listing, Store, StoreError};
use crate::subject::Subject;

/// Maximum time to search all keys for further counters of a client, for its usage and for a reset.
const USAGE_SEARCH: Duration = Duration::from_secs(2);
const RESET_SEARCH: Duration = Duration::from_secs(30);
/// Keys per page of the search.
const PAGE_SIZE: usize = 1000;
/// Maximum number of counters of one client.
const MAX_COUNTERS: usize = 10_000;

/// The usage of one client.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientUsage {
    /// The counters of the client.
    pub counters: Vec<ClientCounter>,
    /// Whether the search for counters of rules keyed by further facts, and of inline limits, was complete.
    pub is_complete: bool,
}

/// One counter of a client.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientCounter {
    /// The subject of the counter.
    pub subject: Subject,
    /// The limit, with its rule.
    pub limit: Limit,
    /// The amount used now.
    pub count: u64,
    /// The amount that can be taken now.
    pub remaining: u64,
    /// The time until the limit is full again.
    pub reset_after: Duration,
    /// Whether the limit is evaluated but not enforced: a shadow rule, or a trial (`next`) limit.
    pub is_shadow: bool,
}

impl<S: Store, O: Observer> Limiter<S, O> {
    /// Returns the usage of one client: of the rules that count per client alone, and for up to 2 s of other keys in
    /// use that contain the client.
    ///
    /// ```
    /// use tollgate::{ClientId, Facts, Limiter, MemoryStore, Policy};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let _ = limiter.check(&Facts::of([("client", "c1")])?).await?;
    /// let client = ClientId::new("c1", "").ok_or("invalid client")?;
    /// assert_eq!(limiter.client_usage(&client).await?.counters[0].count, 1);
    /// assert!(limiter.reset_client(&client).await?);
    /// assert_eq!(limiter.client_usage(&client).await?.counters[0].count, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The store failed.
    pub async fn client_usage(&self, client: &ClientId) -> Result<ClientUsage, StoreError> {
        let active = self.active_policy();
        let mut found = Counters::from_policy(&active, client);
        found.search(&self.store, &active, client, USAGE_SEARCH).await?;
        let mut counters = Vec::with_capacity(found.all.len());
        for (subject, limit) in found.all {
            let status = self.store.stats(&Key::new(&subject, &limit)).await?;
            let (count, remaining) = (status.count(), status.remaining());
            let (reset_after, is_shadow) =
                (status.reset_after(), is_shadow(active.policy(), &limit));
            counters.push(ClientCounter {
                subject,
                limit,
                count,
                remaining,
                reset_after,
                is_shadow,
            });
        }
        Ok(ClientUsage { counters, is_complete: found.is_complete })
    }

    /// Resets all usage of one client. Returns `false` if 30 s were not enough to search all keys in use; what was
    /// found is then reset.
    ///
    /// # Errors
    /// The store failed.
    pub async fn reset_client(&self, client: &ClientId) -> Result<bool, StoreError> {
        self.reset_rules(client, |_| true).await
    }

    /// Resets the usage of one client in the rules with these names. Returns `false` if 30 s were not enough to search
    /// all keys in use. Rules keyed per client alone need no search.
    ///
    /// ```
    /// use tollgate::{ClientId, Facts, Limiter, MemoryStore, Policy};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let _ = limiter.check(&Facts::of([("client", "c1")])?).await?;
    /// let client = ClientId::new("c1", "").ok_or("invalid client")?;
    /// assert!(limiter.reset_client_in(&client, &["default"]).await?);
    /// assert_eq!(limiter.client_usage(&client).await?.counters[0].count, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The store failed.
    pub async fn reset_client_in(
        &self,
        client: &ClientId,
        rules: &[&str],
    ) -> Result<bool, StoreError> {
        self.reset_rules(client, |rule| rules.contains(&rule)).await
    }

    async fn reset_rules(
        &self,
        client: &ClientId,
        is_selected: impl Fn(&str) -> bool + Sync,
    ) -> Result<bool, StoreError> {
        let active = self.active_policy();
        let mut found = Counters::from_policy(&active, client);
        found.all.retain(|(_, limit)| is_selected(limit.rule()));
        // The known counters first: they are most of the usage, and a caller may stop waiting for the search.
        self.reset_all(&found.all).await?;
        if !needs_search(active.policy(), &is_selected) {
            return Ok(true);
        }
        let known = found.all.len();
        found.search(&self.store, &active, client, RESET_SEARCH).await?;
        let mut others = found.all.split_off(known);
        others.retain(|(_, limit)| is_selected(limit.rule()));
        self.reset_all(&others).await?;
        Ok(found.is_complete)
    }

    async fn reset_all(&self, counters: &[(Subject, Limit)]) -> Result<(), StoreError> {
        for (subject, limit) in counters {
            self.store.reset(&Key::new(subject, limit)).await?;
        }
        Ok(())
    }
}

/// The counters of one client.
struct Counters {
    all: Vec<(Subject, Limit)>,
    is_complete: bool,
}

impl Counters {
    /// Returns the counters of rules keyed per client alone, whose keys are known.
    fn from_policy<H>(active: &ActivePolicy<H>, client: &ClientId) -> Self {
        let mut counters = Self { all: Vec::new(), is_complete: true };
        let (subject, policy) = (client.subject(), active.policy());
        for rule in policy.rules().iter().chain([policy.default_rule()]) {
            if matches!(rule.per(), [fact] if fact.as_str() == CLIENT) && can_match(rule, client) {
                counters.add_rule(active, &subject, rule);
            }
        }
        counters
    }

    fn add_rule<H>(&mut self, active: &ActivePolicy<H>, subject: &Subject, rule: &Rule) {
        let overridden = active.override_limits(subject, rule.name());
        let current = overridden.as_deref().unwrap_or(rule.limits());
        // Includes usage from before an override was set.
        let replaced = rule.limits().iter().filter(|limit| !contains(current, limit));
        for limit in current.iter().chain(replaced).chain(rule.next()) {
            self.all.push((subject.clone(), limit.clone()));
        }
    }

    /// Adds counters of rules keyed by further facts and of inline limits, found among all keys in use within
    /// `max_time`.
    async fn search<S: Store, H: Send + Sync>(
        &mut self,
        store: &S,
        active: &ActivePolicy<H>,
        client: &ClientId,
        max_time: Duration,
    ) -> Result<(), StoreError> {
        let known = self.all.iter().map(|(subject, limit)| (subject.to_string(), limit.identity()));
        let mut known: HashSet<(String, String)> = known.collect();
        let prefix = Subject::in_tenant(&client.tenant, [""; 0]);
        let mut listing =
            Listing::all().with_prefix(prefix.as_str().to_owned()).with_page_size(PAGE_SIZE);
        let start = Instant::now();
        loop {
            let page = store.list(&listing).await?;
            for listed in &page.keys {
                let Some(subject) = Subject::from_escaped(&listed.subject) else { continue };
                if !is_of_client(&subject, client, active.policy().rule(&listed.rule)) {
                    continue;
                }
                let limit = active.limit(&subject, &listed.rule, &listed.limit, listed.algorithm);
                let Some(limit) = limit.or_else(|| listed.known.clone()) else { continue };
                if known.insert((listed.subject.clone(), limit.identity())) {
                    self.all.push((subject, limit));
                }
            }
            let Some(next) = page.next else { return Ok(()) };
            if start.elapsed() >= max_time || self.all.len() >= MAX_COUNTERS {
                self.is_complete = false;
                return Ok(());
            }
            listing = listing.after(next);
        }
    }
}

/// Returns whether the selected rules can have counters whose keys are unknown: of rules keyed by further facts, or of
/// limits that are not in the policy.
fn needs_search(policy: &Policy, is_selected: impl Fn(&str) -> bool) -> bool {
    let has_known_keys = |rule: &Rule| matches!(rule.per(), [fact] if fact.as_str() == CLIENT);
    let mut rules = policy.rules().iter().chain([policy.default_rule()]);
    is_selected(INLINE_RULE) || rules.any(|rule| is_selected(rule.name()) && !has_known_keys(rule))
}

fn contains(limits: &[Limit], wanted: &Limit) -> bool {
    limits.iter().any(|limit| limit.identity() == wanted.identity())
}

/// Returns whether a counter is of this client: by the position of `client` in its rule, or for an inline limit by its
/// only fact.
fn is_of_client(subject: &Subject, client: &ClientId, rule: Option<&Rule>) -> bool {
    let position = match rule {
        Some(rule) => rule.per().iter().position(|fact| fact.as_str() == CLIENT),
        None => Some(0),
    };
    let (Some(position), Some(parts)) = (position, Subject::parse(subject.as_str())) else {
        return false;
    };
    let fact = parts.facts.get(position).and_then(Option::as_deref);
    (rule.is_some() || parts.facts.len() == 1)
        && fact == Some(client.id.as_bytes())
        && parts.tenant == client.tenant.as_bytes()
}

fn is_shadow(policy: &Policy, limit: &Limit) -> bool {
    policy
        .rule(limit.rule())
        .is_some_and(|rule| rule.mode() == RuleMode::Shadow || rule.is_on_trial(limit.name()))
}
