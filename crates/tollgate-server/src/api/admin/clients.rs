//! One client: what it has used, and forgetting that.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde::Serialize;
use tollgate::policy::{Policy, Rule, RuleMode};
use tollgate::{
    ActivePolicy, Key, Limit, Listing, MAX_FACT_LENGTH, Observer, Query, Store, Subject, rounding,
};

use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};
use crate::key_listing::{InUse, Sought};
use crate::metrics::Metrics;
use crate::wire::decision::LimitNumbers;

/// How long other counters are looked for when a client is looked at, and when it is reset.
const LOOK: Duration = Duration::from_secs(2);
const SEARCH: Duration = Duration::from_secs(30);
const PAGE: usize = 1000;
/// The most counters of one client that are looked at.
const MOST: usize = 10_000;

const CLIENT: &str = "client";
const TENANT: &str = "tenant";

/// A client of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) tenant: String,
}

impl Client {
    /// One that requests can have.
    pub(crate) fn new(id: String, tenant: String) -> Result<Self, ApiError> {
        let detail = match id.len() {
            0 => "is empty".to_owned(),
            length if length > MAX_FACT_LENGTH => {
                format!("is longer than the {MAX_FACT_LENGTH} bytes a client may have")
            }
            _ => return Ok(Self { id, tenant }),
        };
        Err(ApiError::invalid(detail).at("id"))
    }

    /// The one that asks to be decided by policy, if it says who it is.
    pub(crate) fn asking(asked: &Query<'_>, policy: &Policy) -> Option<Self> {
        let Query::ByPolicy(request) = asked else { return None };
        let facts = request.facts();
        let text = |fact: &[u8]| String::from_utf8(fact.to_vec()).ok();
        let tenant = facts.get(TENANT).unwrap_or(policy.tenant().as_bytes());
        Some(Self { id: text(facts.get(CLIENT)?)?, tenant: text(tenant)? })
    }

    /// As overrides are stored for it.
    pub(crate) fn subject(&self) -> Subject {
        Subject::in_tenant(&self.tenant, [&self.id])
    }

    /// Whose subject this text is.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut parts = Subject::parse(text)?;
        let id = String::from_utf8(parts.facts.pop()??).ok()?;
        Some(Self { id, tenant: String::from_utf8(parts.tenant).ok()? })
    }
}

/// What a client has used.
#[derive(Debug, Serialize)]
pub(crate) struct Stats {
    client: String,
    tenant: String,
    overridden: bool,
    counters: Vec<Counter>,
    /// Whether these are all; if not, there was no time to look for more.
    complete: bool,
}

#[derive(Debug, Serialize)]
struct Counter {
    key: String,
    rule: String,
    name: String,
    algorithm: &'static str,
    count: u64,
    remaining: u64,
    reset_after_ms: u64,
    mode: &'static str,
    /// Who counts it, if not all nodes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(flatten)]
    numbers: LimitNumbers,
}

type InForce = ActivePolicy<<Metrics as Observer>::Handles>;

/// What a client has used of every limit that counts it by itself, and of others as far as they are in use.
pub(crate) async fn stats(app: &App, client: &Client) -> Result<Stats, ApiError> {
    let current = app.limiter().active_policy();
    let mut found = Counters::known(&current, client);
    let others = InUse::new(app, current.policy(), Sought::Deciding);
    found.search(&others, &current, client, LOOK).await?;
    let mut counters = Vec::with_capacity(found.all.len());
    for (subject, limit) in &found.all {
        let counted_by = app.backend().deciding(current.policy().rule(limit.rule()));
        let status = app.backend().used(&Key::new(subject, limit), counted_by).await;
        let status = status.map_err(|error| ApiError::from(&error))?;
        counters.push(Counter {
            key: subject.key().into_owned(),
            rule: limit.rule().to_owned(),
            name: limit.name().to_owned(),
            algorithm: limit.algorithm().as_str(),
            count: status.count(),
            remaining: status.remaining(),
            reset_after_ms: rounding::millis(status.reset_after()),
            mode: mode(&current, limit),
            node: counted_by.node(app),
            numbers: LimitNumbers::of(limit),
        });
    }
    Ok(Stats {
        client: client.id.clone(),
        tenant: client.tenant.clone(),
        overridden: current.overrides().get(&client.subject()).is_some(),
        counters,
        complete: found.is_complete,
    })
}

/// Forgets all that a client has used.
pub(crate) async fn reset(app: &App, client: &Client) -> Result<(), ApiError> {
    let current = app.limiter().active_policy();
    let mut found = Counters::known(&current, client);
    // First those that are known: whoever does not wait for the others has the most of it.
    forget(app, &found.all).await?;
    let known = found.all.len();
    let others = InUse::new(app, current.policy(), Sought::All);
    found.search(&others, &current, client, SEARCH).await?;
    forget(app, found.all.get(known..).unwrap_or_default()).await?;
    if !found.is_complete {
        let detail = "what was found is reset, but there was no time to look at every key for more of this \
                      client; ask again";
        return Err(ApiError::new(ApiErrorKind::Unavailable, detail));
    }
    Ok(())
}

async fn forget(app: &App, counters: &[(Subject, Limit)]) -> Result<(), ApiError> {
    for (subject, limit) in counters {
        let reset = app.backend().reset(&Key::new(subject, limit)).await;
        reset.map_err(|error| ApiError::from(&error))?;
    }
    Ok(())
}

/// The counters of one client.
struct Counters {
    all: Vec<(Subject, Limit)>,
    is_complete: bool,
}

impl Counters {
    /// Those of rules keyed per client alone, which are known by name.
    fn known(current: &InForce, client: &Client) -> Self {
        let mut known = Self { all: Vec::new(), is_complete: true };
        let subject = client.subject();
        let policy = current.policy();
        for rule in policy.rules().iter().chain([policy.default_rule()]) {
            if matches!(rule.per(), [fact] if fact.as_str() == CLIENT) && may_be_of(rule, client) {
                known.add_rule(current, &subject, rule);
            }
        }
        known
    }

    fn add_rule(&mut self, current: &InForce, subject: &Subject, rule: &Rule) {
        let own = current.override_limits(subject, rule.name());
        let live = own.as_deref().unwrap_or(rule.limits());
        // What a client used before it had limits of its own, or by others, is its counter too.
        let before = rule.limits().iter().filter(|limit| !is_among(live, limit));
        for limit in live.iter().chain(before).chain(rule.next()) {
            self.all.push((subject.clone(), limit.clone()));
        }
    }

    /// Adds the others: of rules keyed by more, and of limits that came with requests, there are as many as are in
    /// use. They are looked for among all, as long as there is time.
    async fn search(
        &mut self,
        others: &InUse<'_>,
        current: &InForce,
        client: &Client,
        patience: Duration,
    ) -> Result<(), ApiError> {
        let mut known: HashSet<(String, String)> = self
            .all
            .iter()
            .map(|(subject, limit)| (subject.to_string(), limit.identity()))
            .collect();
        let tenant = Subject::in_tenant(&client.tenant, [""; 0]);
        let mut listing =
            Listing::all().with_prefix(tenant.as_str().to_owned()).with_page_size(PAGE);
        let begun = Instant::now();
        loop {
            let page = others.page(&listing).await;
            let page = page.map_err(|error| ApiError::from(&error))?;
            for listed in &page.keys {
                let Some(subject) = Subject::from_escaped(&listed.subject) else { continue };
                if !is_of(&subject, client, current.policy().rule(&listed.rule)) {
                    continue;
                }
                let limit = current.limit(&subject, &listed.rule, &listed.limit, listed.algorithm);
                let Some(limit) = limit.or_else(|| listed.known.clone()) else { continue };
                if known.insert((listed.subject.clone(), limit.identity())) {
                    self.all.push((subject, limit));
                }
            }
            let Some(next) = page.next else { return Ok(()) };
            if begun.elapsed() >= patience || self.all.len() >= MOST {
                self.is_complete = false;
                return Ok(());
            }
            listing = listing.after(next);
        }
    }
}

/// Whether a rule can match requests of this client: it may be for another.
fn may_be_of(rule: &Rule, client: &Client) -> bool {
    rule.conditions().iter().all(|condition| match condition.fact().as_str() {
        CLIENT => condition.accepts(client.id.as_bytes()),
        TENANT => condition.accepts(client.tenant.as_bytes()),
        _ => true,
    })
}

fn is_among(limits: &[Limit], wanted: &Limit) -> bool {
    limits.iter().any(|limit| limit.identity() == wanted.identity())
}

/// Whether a counter is of this client: by the place that its rule has for clients, or because it counts nothing
/// else.
fn is_of(subject: &Subject, client: &Client, rule: Option<&Rule>) -> bool {
    let place = match rule {
        Some(rule) => rule.per().iter().position(|fact| fact.as_str() == CLIENT),
        None => Some(0),
    };
    let (Some(place), Some(parts)) = (place, Subject::parse(subject.as_str())) else {
        return false;
    };
    let is_alone = rule.is_some() || parts.facts.len() == 1;
    let is_client =
        parts.facts.get(place).is_some_and(|fact| fact.as_deref() == Some(client.id.as_bytes()));
    is_alone && is_client && parts.tenant == client.tenant.as_bytes()
}

fn mode(current: &InForce, limit: &Limit) -> &'static str {
    let rule = current.policy().rule(limit.rule());
    let is_shadow =
        rule.is_some_and(|rule| rule.mode() == RuleMode::Shadow || rule.is_on_trial(limit.name()));
    if is_shadow { "shadow" } else { "enforce" }
}
