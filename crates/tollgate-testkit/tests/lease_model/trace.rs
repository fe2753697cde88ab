//! Counterexamples in a readable form.

use std::fmt::Write;

use stateright::Path;

use crate::action::Action;
use crate::fleet::Fleet;
use crate::node::{Activity, Node};
use crate::numbers::Numbers;

/// Returns one line for each event: the event and the state after it.
pub(crate) fn describe(path: Path<Fleet, Action>, numbers: &Numbers) -> String {
    let steps = path.into_vec();
    let mut text = String::new();
    let states = steps.iter().skip(1).map(|(fleet, _)| fleet);
    let actions = steps.iter().filter_map(|(_, action)| action.as_ref());
    for (number, (action, fleet)) in actions.zip(states).enumerate() {
        let line = format!("{:>3}. {action:<52} | {}", number + 1, state(fleet, numbers));
        writeln!(text, "{}", line.trim_end()).expect("a text");
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
    for (number, node) in fleet.nodes.iter().enumerate() {
        text += &leases(number, node);
    }
    text
}

fn leases(number: usize, node: &Node) -> String {
    let mut text = String::new();
    for lease in node.leases.iter().flatten() {
        let (left, age) = (lease.grant.left, lease.age.ticks());
        write!(text, "; node {number} has {left} of age {age}").expect("a text");
    }
    if let Some(call) = node.call {
        let reply = if call.reply.is_some() { "reply" } else { "request" };
        write!(text, "; its {reply} has age {}", call.age.ticks()).expect("a text");
    }
    if node.activity != Activity::Running {
        write!(text, "; node {number} is {:?}", node.activity).expect("a text");
    }
    text
}
