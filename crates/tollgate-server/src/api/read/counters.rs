//! Live counters, and which of them refuse now.

use serde::Serialize;
use tollgate::policy::{Policy, Rule, RuleMode};
use tollgate::{Decision, Key, Limit, Plan, Status, StoreError, Take, rounding};

use super::chunks::ask_all;
use super::scan::{Found, Scan, Wanted};
use crate::app::App;
use crate::error::ApiError;
use crate::key_listing::{CountedBy, Sought};
use crate::wire::decision::LimitNumbers;
use crate::wire::time::rfc3339;

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
    /// Who counts it, if not all nodes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
}

/// A page of the counters in use.
pub(crate) async fn counters(app: &App, wanted: &Wanted) -> Result<Counters, ApiError> {
    let current = app.limiter().active_policy();
    let mut scan = Scan::begin(app, current.policy(), Sought::Shown, wanted);
    let mut counters = Vec::new();
    while let Some(step) = scan.step(counters.len()).await? {
        let found = step.keys.iter().filter_map(|listed| wanted.find(&current, listed));
        let asked = found.map(|found| counter(app, found, step.counted_by));
        let told = ask_all(asked.collect()).await;
        counters.extend(told.map_err(|error| ApiError::from(&error))?);
    }
    Ok(Counters { counters, cursor: scan.cursor() })
}

/// A page of the keys for which a cost of one would be refused now.
pub(crate) async fn blocks(app: &App, wanted: &Wanted) -> Result<Blocks, ApiError> {
    let current = app.limiter().active_policy();
    let mut scan = Scan::begin(app, current.policy(), Sought::Deciding, wanted);
    let mut blocked = Vec::new();
    while let Some(step) = scan.step(blocked.len()).await? {
        let found = step.keys.iter().filter_map(|listed| wanted.find(&current, listed));
        let asked = found.map(|found| block(app, current.policy(), found, step.counted_by));
        let told = ask_all(asked.collect()).await;
        blocked.extend(told.map_err(|error| ApiError::from(&error))?.into_iter().flatten());
    }
    Ok(Blocks { blocked, cursor: scan.cursor() })
}

async fn counter(
    app: &App,
    found: Found<'_>,
    counted_by: CountedBy,
) -> Result<Counter, StoreError> {
    let key = Key::new(&found.subject, &found.limit);
    let status = app.backend().used(&key, counted_by).await?;
    Ok(Counter {
        place: Place::new(app, &found, counted_by),
        algorithm: found.limit.algorithm().as_str(),
        count: status.count(),
        remaining: status.remaining(),
        numbers: LimitNumbers::of(&found.limit),
    })
}

async fn block(
    app: &App,
    policy: &Policy,
    found: Found<'_>,
    counted_by: CountedBy,
) -> Result<Option<Block>, StoreError> {
    let (listed, limit) = (found.listed, &found.limit);
    let rule = policy.rule(&listed.rule);
    let is_trial =
        rule.is_some_and(|rule| rule.is_on_trial(&listed.limit) || rule.mode() == RuleMode::Shadow);
    if is_trial {
        return Ok(None);
    }
    let cost = rule.map_or(1, Rule::cost);
    let Ok(plan) = Plan::new([Take::new(Key::new(&found.subject, limit), cost)]) else {
        return Ok(None);
    };
    let decision = app.backend().foreseen(&plan, counted_by).await?;
    if decision.is_allowed() {
        return Ok(None);
    }
    let until = decision.retry_after().map(|wait| rfc3339(decision.at() + wait));
    let reason = reason(&decision, limit);
    let place = Place::new(app, &found, counted_by);
    Ok(Some(Block { place, blocked_until: until, reason }))
}

fn reason(decision: &Decision<'_>, limit: &Limit) -> String {
    let (rule, name) = (limit.rule(), limit.name());
    let used = decision.deciding().map_or(0, Status::count);
    let wait = match decision.retry_after().map(rounding::millis) {
        Some(millis) => format!("room in {millis} ms"),
        None => "it never fits".to_owned(),
    };
    format!("rule {rule}, limit {name}: {used} of {} used, {wait}", limit.capacity())
}

impl Place {
    fn new(app: &App, found: &Found<'_>, counted_by: CountedBy) -> Self {
        Self {
            node: counted_by.node(app),
            key: found.subject.key().into_owned(),
            tenant: found.tenant.clone(),
            rule: found.listed.rule.clone(),
            name: found.listed.limit.clone(),
        }
    }
}
