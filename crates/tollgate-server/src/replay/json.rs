//! The report as one line of JSON.

use serde_json::{Value, json};
use tollgate::Timestamp;

use super::report::{Report, ReportedKey};
use super::suggestion::{ONE_PER_MILLE, ONE_PERCENT, Suggestion};
use crate::wire::time::rfc3339;

/// Returns the report as JSON, without a line break.
pub(crate) fn line(report: &Report) -> String {
    let rules: Vec<Value> = report
        .limits
        .iter()
        .map(|row| {
            json!({
                "rule": row.rule,
                "limit_name": row.limit_name,
                "mode": row.mode.as_str(),
                "refused": row.refused,
            })
        })
        .collect();
    let mut line = json!({
        "requests": report.requests,
        "allowed": report.allowed(),
        "refused": report.refused,
        "skipped_lines": report.skipped.count(),
        "rules": rules,
        "keys": keys(&report.keys),
        "suggested": report.suggestions.iter().map(suggested).collect::<Vec<_>>(),
    });
    if let (Some(comparison), Value::Object(fields)) = (&report.comparison, &mut line) {
        fields.insert("newly_refused".to_owned(), keys(&comparison.newly_refused));
        fields.insert("no_longer_refused".to_owned(), keys(&comparison.no_longer_refused));
    }
    line.to_string()
}

fn keys(keys: &[ReportedKey]) -> Value {
    let key = |key: &ReportedKey| {
        json!({
            "key": key.key,
            "rule": key.rule,
            "mode": key.mode.as_str(),
            "refused": key.refused,
            "first": rfc3339(Timestamp::from_micros(key.first)),
            "last": rfc3339(Timestamp::from_micros(key.last)),
        })
    };
    keys.iter().map(key).collect()
}

/// Counts for 0.1 % and 1 % are null if no tried count refuses so few, or if no request matched.
fn suggested(suggestion: &Suggestion) -> Value {
    json!({
        "rule": suggestion.rule,
        "limit_name": suggestion.limit_name,
        "limit": suggestion.rate.count,
        "window": suggestion.rate.window,
        "unit": suggestion.rate.unit,
        "requests": suggestion.requests,
        "refuses_0_1_percent": suggestion.smallest(ONE_PER_MILLE),
        "refuses_1_percent": suggestion.smallest(ONE_PERCENT),
    })
}
