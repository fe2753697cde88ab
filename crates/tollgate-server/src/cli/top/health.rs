//! Health messages, most severe first.

use std::collections::BTreeSet;

use super::format::{ago, count, length};
use super::response::{Frame, Policy};
use super::state::State;
use super::text::visible;

/// Severity of a health message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Error,
    Warning,
    Ok,
}

/// Age of the last frame in seconds above which it is reported.
const MAX_FRAME_AGE: u64 = 3;

type Messages = Vec<(Severity, String)>;

/// Returns the health messages; at least one.
pub(super) fn health(state: &State) -> Messages {
    let mut messages = Vec::new();
    check_connection(state, &mut messages);
    if let Some(frame) = &state.frame {
        check_store(frame, &mut messages);
        check_nodes(frame, &mut messages);
        check_decisions(frame, &mut messages);
    }
    if let Some(policy) = &state.policy {
        check_policy(policy, &mut messages);
    }
    // The sort is stable: messages of equal severity keep the order above.
    messages.sort_by_key(|(severity, _)| *severity);
    if messages.is_empty() {
        messages.push((Severity::Ok, "no problems detected".to_owned()));
    }
    messages
}

fn check_connection(state: &State, messages: &mut Messages) {
    let age = length(i64::try_from(state.frame_age).unwrap_or(i64::MAX));
    match (&state.lost, &state.frame) {
        (Some(reason), _) => {
            let reason = visible(reason);
            let text = format!("connection lost, reconnecting: {reason}; last update {age} ago");
            messages.push((Severity::Error, text));
        }
        (None, None) => messages.push((Severity::Warning, "waiting for data".to_owned())),
        (None, Some(_)) if state.frame_age > MAX_FRAME_AGE => {
            messages.push((Severity::Warning, format!("last update {age} ago")));
        }
        (None, Some(_)) => {}
    }
}

fn check_store(frame: &Frame, messages: &mut Messages) {
    let store = &frame.store;
    match store.breaker.as_deref() {
        None | Some("closed") => {}
        Some("open") => {
            let since = store.lost_since.map(|since| format!(" for {}", ago(frame.t, since)));
            let since = since.unwrap_or_default();
            let text =
                format!("Redis is unreachable{since}: nodes decide without it (breaker open)");
            messages.push((Severity::Error, text));
        }
        Some("half_open") => {
            let text = "Redis was unreachable and is being probed (breaker half-open)";
            messages.push((Severity::Warning, text.to_owned()));
        }
        Some(breaker) => {
            messages.push((Severity::Warning, format!("breaker {}", visible(breaker))));
        }
    }
    if let Some(warning) = &store.warning {
        messages.push((Severity::Warning, format!("store: {}", visible(warning))));
    }
}

fn check_nodes(frame: &Frame, messages: &mut Messages) {
    let down: Vec<String> = frame
        .nodes
        .iter()
        .filter(|node| node.state != "Up")
        .map(|node| visible(&node.id))
        .collect();
    if !down.is_empty() {
        let (total, ids) = (frame.nodes.len(), down.join(", "));
        let text = format!("{} of {total} nodes down: {ids}", down.len());
        messages.push((Severity::Warning, text));
    }
    let silent = frame.nodes.iter().filter(|node| node.state == "Up" && node.silent);
    messages.extend(silent.map(|node| {
        let since = node.last_seen.as_deref().map(|time| format!(" since {}", visible(time)));
        (Severity::Warning, format!("{} silent{}", visible(&node.id), since.unwrap_or_default()))
    }));
    let up = frame.nodes.iter().filter(|node| node.state == "Up");
    let policies: BTreeSet<&str> = up.filter_map(|node| node.policy.as_deref()).collect();
    if policies.len() > 1 {
        let text = format!("nodes run {} different policies", policies.len());
        messages.push((Severity::Warning, text));
    }
    let warnings = frame.nodes.iter().filter_map(|node| Some((&node.id, node.warning.as_ref()?)));
    messages.extend(warnings.map(|(id, warning)| {
        (Severity::Warning, format!("{}: {}", visible(id), visible(warning)))
    }));
}

fn check_decisions(frame: &Frame, messages: &mut Messages) {
    let now = &frame.now;
    // While the breaker is open, failing probes are expected, and the open breaker is reported already.
    if now.errors > 0.0 && frame.store.breaker.as_deref() == Some("closed") {
        let text = format!("{} store calls per second fail", count(now.errors));
        messages.push((Severity::Warning, text));
    }
    if now.degraded > 0.0 {
        let text = format!("{} decisions per second are made without Redis", count(now.degraded));
        messages.push((Severity::Warning, text));
    }
}

fn check_policy(policy: &Policy, messages: &mut Messages) {
    if let Some(error) = &policy.error {
        let error = visible(error);
        let text = format!("policy file not loaded, the previous policy stays active: {error}");
        messages.push((Severity::Error, text));
    }
    let warnings = policy.warnings.iter();
    messages.extend(warnings.map(|text| (Severity::Warning, format!("policy: {}", visible(text)))));
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn texts(changes: &[(&str, &str)]) -> Vec<String> {
        health(&sample::state_with(changes)).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn healthy_state_has_one_message() {
        assert_eq!(health(&sample::state()), [(Severity::Ok, "no problems detected".to_owned())]);
        let empty = health(&State::new("x"));
        assert_eq!(empty, [(Severity::Warning, "waiting for data".to_owned())]);
    }

    #[test]
    fn sorts_messages_by_severity() {
        let messages = texts(&[
            (
                "\"errors\":0,\"p50_us\":210,\"p99_us\":1900",
                "\"errors\":2,\"p50_us\":1,\"p99_us\":1",
            ),
            ("\"breaker\":\"closed\",\"keys\"", "\"breaker\":\"open\",\"keys\""),
            ("\"max_keys\":null,\"warning\":null", "\"max_keys\":null,\"warning\":\"a\\u001b[1m\""),
            ("0.0.8:8080\",\"state\":\"Up\"", "0.0.8:8080\",\"state\":\"Down\""),
            ("\"error\":null,\"warnings\":[]", "\"error\":\"line 3\",\"warnings\":[\"soon\"]"),
        ]);
        let expected = [
            "Redis is unreachable: nodes decide without it (breaker open)",
            "policy file not loaded, the previous policy stays active: line 3",
            "store: a\\u{1b}[1m",
            "1 of 2 nodes down: web-2",
            "policy: soon",
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn outage_and_silent_node_show_since_when() {
        let messages = texts(&[
            (
                "\"breaker\":\"closed\",\"keys\"",
                "\"breaker\":\"open\",\"lost_since\":1794843544000,\"keys\"",
            ),
            ("\"silent\":false", "\"silent\":true"),
        ]);
        let expected = [
            "Redis is unreachable for 60s: nodes decide without it (breaker open)",
            "web-1 silent since 2026-11-16T15:00:02Z",
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn lost_connection_shows_age_of_data() {
        let mut state = sample::state();
        (0..4).for_each(|_| state.tick());
        assert_eq!(health(&state)[0].1, "last update 4s ago");
        state.apply(super::super::update::Update::Lost("connection refused".to_owned()));
        let expected = "connection lost, reconnecting: connection refused; last update 4s ago";
        assert_eq!(health(&state)[0], (Severity::Error, expected.to_owned()));
    }

    #[test]
    fn reports_different_policies() {
        let other = ("\"version\":null,\"policy\":null", "\"version\":null,\"policy\":\"old\"");
        assert_eq!(texts(&[other]), ["nodes run 2 different policies"]);
    }
}
