//! JSON responses.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tollgate::policy::Policy;
use tollgate::{
    ActivePolicy, ClientCounter, ClientId, ClientUsage, Limit, LimitChange, LimitField,
    OtherLimits, Override, OverrideLimit, OverrideProposal, Timestamp, rounding,
};

/// The response of GET: the newest override, and all overrides of the client. `None` without an override.
pub(super) fn overrides_view(
    client: &ClientId,
    all: &[Arc<Override>],
    policy: &Policy,
) -> Option<Value> {
    let newest = all.iter().max_by_key(|stored| stored.set_at)?;
    let mut view = override_fields(client, newest, all, policy);
    view.insert("overrides".to_owned(), all_views(client, all, policy));
    Some(Value::Object(view))
}

/// The response of PUT: the override, all overrides of the client with it, and the limits that it replaces and keeps.
/// `None` for a proposal without overrides.
pub(super) fn proposal_view(
    client: &ClientId,
    proposal: &OverrideProposal,
    all: &[Arc<Override>],
    policy: &Policy,
) -> Option<Value> {
    let mut view = override_fields(client, proposal.overrides.first()?, all, policy);
    let replaces: Vec<Value> = proposal.replaces.iter().map(change_view).collect();
    let keeps: Vec<Value> = proposal.keeps.iter().map(kept_view).collect();
    view.insert("applies_to".to_owned(), proposal.rules().into());
    view.insert("overrides".to_owned(), all_views(client, all, policy));
    view.insert("replaces".to_owned(), replaces.into());
    view.insert("keeps".to_owned(), keeps.into());
    Some(Value::Object(view))
}

fn all_views(client: &ClientId, all: &[Arc<Override>], policy: &Policy) -> Value {
    let view = |stored: &Arc<Override>| Value::Object(override_fields(client, stored, all, policy));
    all.iter().map(view).collect()
}

fn change_view(change: &LimitChange) -> Value {
    let text = |limit: &Option<Limit>| limit.as_ref().map(ToString::to_string);
    let mut view = json!({
        "rule": change.rule,
        "limit_name": change.name,
        "before": text(&change.before),
        "after": text(&change.after),
    });
    add_burst(&mut view, "burst_before", change.before.as_ref());
    add_burst(&mut view, "burst_after", change.after.as_ref());
    view
}

fn kept_view(limit: &Limit) -> Value {
    let mut view =
        json!({ "rule": limit.rule(), "limit_name": limit.name(), "limit": limit.to_string() });
    add_burst(&mut view, "burst", Some(limit));
    view
}

/// Adds the burst of a token bucket if it differs from the count.
fn add_burst(view: &mut Value, name: &str, limit: Option<&Limit>) {
    let is_bucket = |limit: &&Limit| limit.letter().has(LimitField::Burst);
    let burst = limit.filter(is_bucket).map(|limit| (limit.capacity(), limit.count()));
    if let (Some((burst, count)), Some(view)) = (burst, view.as_object_mut())
        && burst != count
    {
        view.insert(name.to_owned(), burst.into());
    }
}

/// An override of a client that has the overrides `all`, and the rules of the active policy that it changes.
fn override_fields(
    client: &ClientId,
    stored: &Override,
    all: &[Arc<Override>],
    policy: &Policy,
) -> Map<String, Value> {
    let effect = stored.effect_among(all, policy);
    let limits: Vec<Value> = stored.limits().iter().map(limit_view).collect();
    let fields: [(&str, Value); 10] = [
        ("client", client.id().into()),
        ("tenant", client.tenant().into()),
        ("limits", limits.into()),
        ("rule", stored.rule.clone().into()),
        ("only", (stored.other_limits == OtherLimits::Remove).into()),
        ("reason", stored.reason.clone().into()),
        ("author", stored.author.clone().into()),
        ("set_at", rfc3339(stored.set_at).into()),
        ("expires_at", stored.expires_at.map(rfc3339).into()),
        ("applies_to", effect.rules.into()),
    ];
    let mut fields: Map<String, Value> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    fields.insert("problem".to_owned(), effect.problem.map(|problem| problem.to_string()).into());
    fields
}

fn limit_view(limit: &OverrideLimit) -> Value {
    let window_ms = limit.window.map(rounding::millis);
    let mut view = json!({ "limit": limit.count, "window_ms": window_ms });
    if let Some(view) = view.as_object_mut() {
        let optional = [
            ("burst", limit.burst.map(Value::from)),
            ("algorithm", limit.algorithm.map(|algorithm| algorithm.as_str().into())),
            ("unit", limit.unit.as_ref().map(|unit| unit.as_str().into())),
            ("name", limit.name.clone().map(Value::from)),
        ];
        for (name, value) in optional {
            view.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    view
}

/// The response of GET stats.
pub(super) fn stats_view<H>(
    client: &ClientId,
    usage: &ClientUsage,
    active: &ActivePolicy<H>,
) -> Value {
    let view = |counter: &ClientCounter| {
        let overridden = active.override_limits(&counter.subject, counter.limit.rule());
        counter_view(counter, overridden.is_some())
    };
    json!({
        "client": client.id(),
        "tenant": client.tenant(),
        "overridden": !active.overrides().get(&client.subject()).is_empty(),
        "counters": usage.counters.iter().map(view).collect::<Vec<_>>(),
        "complete": usage.is_complete,
    })
}

fn counter_view(counter: &ClientCounter, is_overridden: bool) -> Value {
    let limit = &counter.limit;
    let window = Some(limit.window()).filter(|window| !window.is_zero());
    let mut view = json!({
        "key": counter.subject.key(),
        "rule": limit.rule(),
        "name": limit.name(),
        "unit": limit.unit().as_str(),
        "algorithm": limit.algorithm().as_str(),
        "limit": limit.count(),
        "window_ms": window.map(rounding::millis),
        "count": counter.count,
        "remaining": counter.remaining,
        "reset_after_ms": rounding::millis(counter.reset_after),
        "mode": if counter.is_shadow { "shadow" } else { "enforce" },
        "overridden": is_overridden,
    });
    if let Some(view) = view.as_object_mut() {
        let burst = limit.letter().has(LimitField::Burst).then(|| limit.capacity());
        view.extend(burst.map(|burst| ("burst".to_owned(), burst.into())));
        let ttl = limit.ttl().map(rounding::millis);
        view.extend(ttl.map(|ttl| ("ttl_ms".to_owned(), ttl.into())));
    }
    view
}

fn rfc3339(timestamp: Timestamp) -> String {
    let micros = i64::try_from(timestamp.as_micros()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX).to_string()
}
