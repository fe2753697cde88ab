//! How things are, in sentences: the worst first.

use std::collections::BTreeSet;

use super::figures::{count, length};
use super::response::{Frame, Policy};
use super::state::State;
use super::text::visible;

/// How much a sentence should worry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worry {
    Bad,
    Doubtful,
    None,
}

/// For how many seconds a frame may be missing before that is worth a word.
const LATE: u64 = 3;

/// What is to say. There is always something.
pub(super) fn health(state: &State) -> Vec<(Worry, String)> {
    let mut said = Vec::new();
    of_the_link(state, &mut said);
    if let Some(frame) = &state.frame {
        of_the_store(frame, &mut said);
        of_nodes(frame, &mut said);
        of_decisions(frame, &mut said);
    }
    if let Some(policy) = &state.policy {
        of_the_policy(policy, &mut said);
    }
    // The order within a worry is the one above.
    said.sort_by_key(|(worry, _)| *worry);
    if said.is_empty() {
        said.push((Worry::None, "all is well".to_owned()));
    }
    said
}

fn of_the_link(state: &State, said: &mut Vec<(Worry, String)>) {
    let old = length(i64::try_from(state.quiet).unwrap_or(i64::MAX));
    match (&state.lost, &state.frame) {
        (Some(reason), _) => {
            let reason = visible(reason);
            said.push((Worry::Bad, format!("reconnecting: {reason}; figures are {old} old")));
        }
        (None, None) => said.push((Worry::Doubtful, "waiting for the first figures".to_owned())),
        (None, Some(_)) if state.quiet > LATE => {
            said.push((Worry::Doubtful, format!("figures are {old} old")));
        }
        (None, Some(_)) => {}
    }
}

fn of_the_store(frame: &Frame, said: &mut Vec<(Worry, String)>) {
    let store = &frame.store;
    match store.breaker.as_deref() {
        None | Some("closed") => {}
        Some("open") => {
            said.push((Worry::Bad, "the store is lost: nodes decide alone".to_owned()));
        }
        Some("half_open") => {
            said.push((Worry::Doubtful, "the store was lost and is tried again".to_owned()));
        }
        Some(other) => said.push((Worry::Doubtful, format!("the breaker is {}", visible(other)))),
    }
    if let Some(warning) = &store.warning {
        said.push((Worry::Doubtful, format!("store: {}", visible(warning))));
    }
}

fn of_nodes(frame: &Frame, said: &mut Vec<(Worry, String)>) {
    let down: Vec<String> = frame
        .nodes
        .iter()
        .filter(|node| node.state != "Up")
        .map(|node| visible(&node.id))
        .collect();
    if !down.is_empty() {
        let (all, which) = (frame.nodes.len(), down.join(", "));
        said.push((Worry::Doubtful, format!("{} of {all} nodes down: {which}", down.len())));
    }
    let up = frame.nodes.iter().filter(|node| node.state == "Up");
    let policies: BTreeSet<&str> = up.filter_map(|node| node.policy.as_deref()).collect();
    if policies.len() > 1 {
        said.push((Worry::Doubtful, format!("nodes decide by {} policies", policies.len())));
    }
    let warnings = frame.nodes.iter().filter_map(|node| Some((&node.id, node.warning.as_ref()?)));
    said.extend(
        warnings.map(|(id, warning)| {
            (Worry::Doubtful, format!("{}: {}", visible(id), visible(warning)))
        }),
    );
}

fn of_decisions(frame: &Frame, said: &mut Vec<(Worry, String)>) {
    let now = &frame.now;
    // A store that is lost is told of already, and is asked now and then whether it is back.
    if now.errors > 0.0 && frame.store.breaker.as_deref() == Some("closed") {
        let told = format!("the store leaves {} questions a second unanswered", count(now.errors));
        said.push((Worry::Doubtful, told));
    }
    if now.degraded > 0.0 {
        let told = format!("{} decisions a second without the store", count(now.degraded));
        said.push((Worry::Doubtful, told));
    }
}

fn of_the_policy(policy: &Policy, said: &mut Vec<(Worry, String)>) {
    if let Some(error) = &policy.error {
        said.push((Worry::Bad, format!("the policy file is not in force: {}", visible(error))));
    }
    let warnings = policy.warnings.iter();
    said.extend(warnings.map(|told| (Worry::Doubtful, format!("policy: {}", visible(told)))));
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn said(changes: &[(&str, &str)]) -> Vec<String> {
        health(&sample::state_with(changes)).into_iter().map(|(_, said)| said).collect()
    }

    #[test]
    fn nothing_to_say_is_said() {
        assert_eq!(health(&sample::state()), [(Worry::None, "all is well".to_owned())]);
        let empty = health(&State::new("x"));
        assert_eq!(empty, [(Worry::Doubtful, "waiting for the first figures".to_owned())]);
    }

    #[test]
    fn the_worst_comes_first() {
        let told = said(&[
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
            "the store is lost: nodes decide alone",
            "the policy file is not in force: line 3",
            "store: a\\u{1b}[1m",
            "1 of 2 nodes down: web-2",
            "policy: soon",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_loss_is_told_with_its_age() {
        let mut state = sample::state();
        (0..4).for_each(|_| state.tick());
        assert_eq!(health(&state)[0].1, "figures are 4s old");
        state.apply(super::super::update::Update::Lost("connection refused".to_owned()));
        let expected = "reconnecting: connection refused; figures are 4s old";
        assert_eq!(health(&state)[0], (Worry::Bad, expected.to_owned()));
    }

    #[test]
    fn nodes_that_differ_are_told() {
        let other = ("\"version\":null,\"policy\":null", "\"version\":null,\"policy\":\"old\"");
        assert_eq!(said(&[other]), ["nodes decide by 2 policies"]);
    }
}
