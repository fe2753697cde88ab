//! Key names in Redis.
//!
//! A counter is `prefix{subject}:identity`. The braces are the Redis hash tag: all counters of one subject are in
//! one cluster slot. Subjects are escaped and contain no brace.

use std::time::Duration;

use tollgate::reservation::ReservationToken;
use tollgate::{Subject, Timestamp};

/// Placeholder for the empty subject (`per: []`). `{}` is no hash tag, and an escaped subject is never a single
/// `%`.
const EMPTY_SUBJECT: &str = "%";

/// The key names of one deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) const fn new(prefix: String) -> Self {
        Self { prefix }
    }

    pub(crate) fn counter(&self, subject: &str, identity: &str) -> Vec<u8> {
        let subject = if subject.is_empty() { EMPTY_SUBJECT } else { subject };
        [&self.prefix, "{", subject, "}:", identity].concat().into_bytes()
    }

    /// The record of a reservation. The hint selects its cluster slot.
    pub(crate) fn reservation(&self, token: &ReservationToken) -> Vec<u8> {
        format!("{}{{{}}}:reservation/{:032x}", self.prefix, token.hint(), token.place())
            .into_bytes()
    }

    /// What settlements gave back to a token bucket.
    pub(crate) fn given_back(&self, subject: &str, identity: &str) -> Vec<u8> {
        self.counter(subject, &format!("given_back/{identity}"))
    }

    /// Returns the subject and the limit identity of a counter's key, or `None` if it is no counter of this
    /// deployment.
    pub(crate) fn parts<'k>(&self, key: &'k [u8]) -> Option<(&'k str, &'k str)> {
        let key = std::str::from_utf8(key).ok()?;
        let (subject, identity) =
            key.strip_prefix(&self.prefix)?.strip_prefix('{')?.split_once("}:")?;
        if subject == EMPTY_SUBJECT {
            return Some(("", identity));
        }
        Subject::parse(subject).map(|_| (subject, identity))
    }

    /// Returns a glob pattern for the counters of all subjects with this prefix.
    pub(crate) fn pattern(&self, subjects: &str) -> String {
        let mut pattern = String::new();
        for letter in self.prefix.chars().chain(['{']).chain(subjects.chars()) {
            if matches!(letter, '*' | '?' | '[' | ']' | '^' | '-' | '\\') {
                pattern.push('\\');
            }
            pattern.push(letter);
        }
        pattern + "*"
    }

    /// The hash of nodes.
    pub(crate) fn nodes(&self) -> String {
        format!("{}nodes", self.prefix)
    }

    /// The hash of overrides.
    pub(crate) fn overrides(&self) -> String {
        format!("{}overrides", self.prefix)
    }

    /// The stream of audit entries. Its hash tag is the key of the overrides, because one call changes both.
    pub(crate) fn audit(&self) -> String {
        format!("{}audit{{{}}}", self.prefix, self.overrides())
    }

    /// The sorted set of nodes by the time until which they count as up. One call changes all data of a node, so its
    /// hash tag is the key of the nodes.
    pub(crate) fn node_deadlines(&self) -> String {
        format!("{}deadlines{{{}}}", self.prefix, self.nodes())
    }

    /// The number of nodes that have left cleanly.
    pub(crate) fn node_departures(&self) -> String {
        format!("{}departures{{{}}}", self.prefix, self.nodes())
    }

    /// The stream of node reports.
    pub(crate) fn node_reports(&self) -> String {
        format!("{}reports{{{}}}", self.prefix, self.nodes())
    }

    /// The current state of a node.
    pub(crate) fn node_state(&self, node: &str) -> String {
        format!("{}node{{{}}}:{node}", self.prefix, self.nodes())
    }

    /// The sorted set of nodes that are not silent, by the time of their last report.
    pub(crate) fn node_seen(&self) -> String {
        format!("{}seen{{{}}}", self.prefix, self.nodes())
    }

    /// Present for some seconds after a time without reports, in which no node is found to be silent.
    pub(crate) fn node_grace(&self) -> String {
        format!("{}grace{{{}}}", self.prefix, self.nodes())
    }

    /// The number of the last figures of each node.
    pub(crate) fn report_numbers(&self) -> String {
        format!("{}numbers{{{}}}", self.prefix, self.nodes())
    }

    /// The sorted set of events by their time.
    pub(crate) fn event_log(&self) -> String {
        format!("{}eventlog{{{}}}", self.prefix, self.nodes())
    }

    /// The number of events that were ever added.
    pub(crate) fn event_count(&self) -> String {
        format!("{}eventcount{{{}}}", self.prefix, self.nodes())
    }

    /// The hash of counts in one interval of the history.
    pub(crate) fn history(&self, length: Duration, start: Timestamp) -> String {
        let (length, start) = (length.as_secs(), start.as_micros() / 1_000_000);
        format!("{}history{{{}}}:{length}:{start}", self.prefix, self.nodes())
    }

    /// The channel of change events.
    pub(crate) fn channel(&self) -> String {
        format!("{}events", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> Keys {
        Keys::new("rl:".to_owned())
    }

    #[test]
    fn keys_are_human_readable() {
        let subject = Subject::in_tenant("acme", ["user 1"]);
        let key = keys().counter(subject.as_str(), "tdefault/60s");
        assert_eq!(key, b"rl:{acme:user%201}:tdefault/60s");
        assert_eq!(keys().counter("", "tdefault/60s"), b"rl:{%}:tdefault/60s");
        assert_eq!(keys().pattern(":a*"), "rl:{:a\\**");
    }

    #[test]
    fn keys_of_other_applications_are_ignored() {
        for key in ["rl:nodes", "rl:{:a", "x:{:a}:tdefault/60s", "rl:{a b}:tdefault/60s"] {
            assert_eq!(keys().parts(key.as_bytes()), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn every_key_contains_its_subject(facts in prop::collection::vec(any::<Vec<u8>>(), 0..4)) {
            let subject = Subject::of(&facts);
            let key = keys().counter(subject.as_str(), "tdefault/60s");
            prop_assert_eq!(keys().parts(&key), Some((subject.as_str(), "tdefault/60s")));
            let tag = key.iter().filter(|byte| b"{}".contains(byte)).count();
            prop_assert_eq!(tag, 2);
        }
    }
}
