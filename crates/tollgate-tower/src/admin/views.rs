//! JSON responses.

use serde_json::{Map, Value, json};
use tollgate::policy::Policy;
use tollgate::{
    ClientCounter, ClientId, ClientUsage, LimitField, Override, OverrideLimit, Timestamp, rounding,
};

/// The response of GET and PUT: the override, and the rules of the active policy that it changes.
pub(super) fn override_view(client: &ClientId, stored: &Override, policy: &Policy) -> Value {
    let effect = stored.effect(policy);
    let mut view = override_fields(stored);
    view.insert("client".to_owned(), client.id().into());
    view.insert("tenant".to_owned(), client.tenant().into());
    view.insert("applies_to".to_owned(), effect.rules.into());
    view.insert("problem".to_owned(), effect.problem.map(|problem| problem.to_string()).into());
    view.insert("overrides".to_owned(), json!([override_fields(stored)]));
    Value::Object(view)
}

fn override_fields(stored: &Override) -> Map<String, Value> {
    let mut fields = Map::new();
    let limits: Vec<Value> = stored.limits().iter().map(limit_view).collect();
    fields.insert("limits".to_owned(), limits.into());
    fields.insert("rule".to_owned(), stored.rule.clone().into());
    fields.insert("reason".to_owned(), stored.reason.clone().into());
    fields.insert("author".to_owned(), stored.author.clone().into());
    fields.insert("set_at".to_owned(), rfc3339(stored.set_at).into());
    fields.insert("expires_at".to_owned(), stored.expires_at.map(rfc3339).into());
    fields
}

fn limit_view(limit: &OverrideLimit) -> Value {
    let window_ms = limit.window.map(rounding::millis);
    let mut view = json!({ "limit": limit.count, "window_ms": window_ms });
    if let Some(view) = view.as_object_mut() {
        let optional = [
            ("burst", limit.burst.map(Value::from)),
            ("algorithm", limit.algorithm.map(|algorithm| algorithm.as_str().into())),
            ("name", limit.name.clone().map(Value::from)),
        ];
        for (name, value) in optional {
            view.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    view
}

/// The response of GET stats.
pub(super) fn stats_view(client: &ClientId, usage: &ClientUsage, is_overridden: bool) -> Value {
    json!({
        "client": client.id(),
        "tenant": client.tenant(),
        "overridden": is_overridden,
        "counters": usage.counters.iter().map(counter_view).collect::<Vec<_>>(),
        "complete": usage.is_complete,
    })
}

fn counter_view(counter: &ClientCounter) -> Value {
    let limit = &counter.limit;
    let window = Some(limit.window()).filter(|window| !window.is_zero());
    let mut view = json!({
        "key": counter.subject.key(),
        "rule": limit.rule(),
        "name": limit.name(),
        "algorithm": limit.algorithm().as_str(),
        "limit": limit.count(),
        "window_ms": window.map(rounding::millis),
        "count": counter.count,
        "remaining": counter.remaining,
        "reset_after_ms": rounding::millis(counter.reset_after),
        "mode": if counter.is_shadow { "shadow" } else { "enforce" },
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
