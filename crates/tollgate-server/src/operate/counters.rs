//! Live counters, and which of them refuse now.

use std::borrow::Cow;

use serde::Serialize;
use tollgate::policy::{Policy, Rule, RuleMode};
use tollgate::{
    Cursor, Decision, Key, Limit, ListedKey, Listing, Plan, Status, Store, Subject, Take, round_up,
};

use crate::app::App;
use crate::error::ApiError;
use crate::wire::answer::LimitNumbers;
use crate::wire::time::rfc3339;

/// Keys looked at for one page of blocks: a page may be empty and still have a cursor.
const LOOKED_AT: usize = 10_000;

/// Which page is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) tenant: String,
    pub(crate) prefix: String,
    pub(crate) page_size: usize,
    pub(crate) cursor: Option<String>,
}

/// A page of counters.
#[derive(Debug, Serialize)]
pub(crate) struct Counters {
    counters: Vec<Counter>,
    cursor: Option<String>,
}

/// A page of keys that are refused now.
#[derive(Debug, Serialize)]
pub(crate) struct Blocks {
    blocked: Vec<Block>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Counter {
    #[serde(flatten)]
    place: Place,
    algorithm: &'static str,
    count: u64,
    remaining: u64,
    #[serde(flatten)]
    numbers: LimitNumbers,
}

#[derive(Debug, Serialize)]
struct Block {
    #[serde(flatten)]
    place: Place,
    blocked_until: Option<String>,
    reason: String,
}

/// Whose counter, and of which limit.
#[derive(Debug, Serialize)]
struct Place {
    key: String,
    tenant: String,
    rule: String,
    name: String,
}

/// A page of the counters in use.
pub(crate) async fn counters(app: &App, wanted: &Wanted) -> Result<Counters, ApiError> {
    let store = app.limiter().store();
    let page =
        Store::list(store, &listing(wanted)).await.map_err(|error| ApiError::from(&error))?;
    let current = app.limiter().current();
    let mut counters = Vec::with_capacity(page.keys.len());
    for listed in &page.keys {
        let Some((limit, subject)) = resolve(current.policy(), listed) else { continue };
        let status = Store::stats(store, &Key::new(&subject, limit)).await;
        let status = status.map_err(|error| ApiError::from(&error))?;
        counters.push(Counter {
            place: Place::new(listed),
            algorithm: limit.algorithm().as_str(),
            count: status.count(),
            remaining: status.remaining(),
            numbers: LimitNumbers::of(limit),
        });
    }
    Ok(Counters { counters, cursor: page.next.map(|cursor| cursor.as_str().to_owned()) })
}

/// A page of the keys for which a cost of one would be refused now.
pub(crate) async fn blocks(app: &App, wanted: &Wanted) -> Result<Blocks, ApiError> {
    let store = app.limiter().store();
    let current = app.limiter().current();
    let (mut blocked, mut looked_at) = (Vec::new(), 0);
    let mut listing = listing(wanted);
    loop {
        let page = Store::list(store, &listing).await.map_err(|error| ApiError::from(&error))?;
        looked_at += page.keys.len();
        for listed in &page.keys {
            blocked.extend(block(app, current.policy(), listed).await?);
        }
        match page.next {
            Some(next) if blocked.len() < wanted.page_size && looked_at < LOOKED_AT => {
                listing = listing.after(next);
            }
            next => {
                let cursor = next.map(|cursor| cursor.as_str().to_owned());
                return Ok(Blocks { blocked, cursor });
            }
        }
    }
}

async fn block(app: &App, policy: &Policy, listed: &ListedKey) -> Result<Option<Block>, ApiError> {
    let Some((limit, subject)) = resolve(policy, listed) else { return Ok(None) };
    let rule = policy.rule(&listed.rule);
    let is_trial = rule.is_some_and(|rule| rule.mode() == RuleMode::Shadow)
        || listed.limit.starts_with("next.");
    if is_trial {
        return Ok(None);
    }
    let cost = rule.map_or(1, Rule::cost);
    let Ok(plan) = Plan::new([Take::new(Key::new(&subject, limit), cost)]) else { return Ok(None) };
    let decision = Store::peek(app.limiter().store(), &plan).await;
    let decision = decision.map_err(|error| ApiError::from(&error))?;
    if decision.is_allowed() {
        return Ok(None);
    }
    let until = decision.retry_after().map(|wait| rfc3339(decision.at() + wait));
    let reason = reason(&decision, limit);
    Ok(Some(Block { place: Place::new(listed), blocked_until: until, reason }))
}

fn reason(decision: &Decision<'_>, limit: &Limit) -> String {
    let (rule, name) = (limit.rule(), limit.name());
    let used = decision.deciding().map_or(0, Status::count);
    let wait = match decision.retry_after().map(round_up::millis) {
        Some(millis) => format!("room in {millis} ms"),
        None => "it never fits".to_owned(),
    };
    format!("rule {rule}, limit {name}: {used} of {} used, {wait}", limit.capacity())
}

fn listing(wanted: &Wanted) -> Listing {
    let prefix = match (wanted.tenant.as_str(), wanted.prefix.as_str()) {
        ("", "") => String::new(),
        (tenant, prefix) => Subject::in_tenant(tenant, [prefix]).as_str().to_owned(),
    };
    let listing = Listing::all().with_prefix(prefix).with_page_size(wanted.page_size);
    match &wanted.cursor {
        Some(cursor) => listing.after(Cursor::new(cursor.clone())),
        None => listing,
    }
}

/// The limit as the policy has it now, or else as the store last saw it.
fn resolve<'l>(policy: &'l Policy, listed: &'l ListedKey) -> Option<(&'l Limit, Subject)> {
    let now = policy.limit(&listed.rule, &listed.limit, listed.algorithm);
    let limit = now.or(listed.known.as_ref())?;
    Some((limit, Subject::from_escaped(&listed.subject)?))
}

impl Place {
    fn new(listed: &ListedKey) -> Self {
        let tenant = Subject::parse(&listed.subject).map(|parts| parts.tenant).unwrap_or_default();
        let subject = Subject::from_escaped(&listed.subject);
        let key = subject.as_ref().map_or(Cow::Borrowed(&*listed.subject), Subject::key);
        let tenant = String::from_utf8_lossy(&tenant).into_owned();
        Self {
            key: key.into_owned(),
            tenant,
            rule: listed.rule.clone(),
            name: listed.limit.clone(),
        }
    }
}
