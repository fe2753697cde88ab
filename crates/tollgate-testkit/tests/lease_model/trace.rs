//! Counterexamples in a readable form.

use std::fmt::Write;

use stateright::Path;

use crate::action::Action;
use crate::fleet::Fleet;
use crate::node::{Call, Lease, Node};
use crate::numbers::Numbers;

/// Returns one line for each event: the event and the state after it. Ages stop at the hold.
pub(crate) fn describe(path: Path<Fleet, Action>, numbers: &Numbers) -> String {
    let steps = path.into_vec();
    let mut text = String::new();
    let states = steps.iter().skip(1).map(|(fleet, _)| fleet);
    let actions = steps.iter().filter_map(|(_, action)| action.as_ref());
    for (number, (action, fleet)) in actions.zip(states).enumerate() {
        let (action, state) = (action.to_string(), state(fleet, numbers));
        writeln!(text, "{:>3}. {action:<55} {state}", number + 1).expect("a text");
    }
    text
}

fn state(fleet: &Fleet, numbers: &Numbers) -> String {
    let grains = numbers.rate().map_or(1, |(_, grains)| grains);
    let (used, max) = (fleet.store.used(numbers), numbers.limit.capacity() * grains);
    let admitted = match fleet.bound.is_exceeded() {
        true => "EXCEEDED".to_owned(),
        false => fleet.bound.used().to_string(),
    };
    let mut text = format!("store {used}, admitted {admitted} of {max}");
    for (number, node) in fleet.nodes.iter().enumerate().filter(|(_, node)| !node.is_idle()) {
        let parts: Vec<String> = parts(node).collect();
        write!(text, "; node {number}: {}", parts.join(", ")).expect("a text");
    }
    text
}

/// What a node has: leases, a call, and whether it does nothing.
fn parts(node: &Node) -> impl Iterator<Item = String> {
    let lease =
        |lease: &Lease| format!("lease of {} at age {}", lease.grant.left, lease.age.ticks());
    let call = |call: Call| {
        let name = if call.reply.is_some() { "reply" } else { "request" };
        format!("{name} at age {}", call.age.ticks())
    };
    let activity = (!node.is_running()).then(|| format!("{:?}", node.activity).to_lowercase());
    node.leases.iter().flatten().map(lease).chain(node.call.map(call)).chain(activity)
}
