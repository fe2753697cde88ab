//! The names of keys in Redis.
//!
//! A counter is `prefix{subject}:scope`. The braces are Redis's hash tag: all counters of one subject live
//! in one slot of a cluster. A subject is escaped, so it holds no brace.

use tollgate::Subject;

/// What stands for the subject of nobody's facts. Braces around nothing would be no hash tag, and no
/// escaping writes a single percent sign.
const NOBODY: &str = "%";

/// The names of one deployment's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) const fn new(prefix: String) -> Self {
        Self { prefix }
    }

    pub(crate) fn counter(&self, subject: &str, scope: &str) -> Vec<u8> {
        let subject = if subject.is_empty() { NOBODY } else { subject };
        [&self.prefix, "{", subject, "}:", scope].concat().into_bytes()
    }

    /// The subject and the scope of a counter's key; none if it is not one of ours.
    pub(crate) fn parts<'k>(&self, key: &'k [u8]) -> Option<(&'k str, &'k str)> {
        let key = std::str::from_utf8(key).ok()?;
        let (subject, scope) =
            key.strip_prefix(&self.prefix)?.strip_prefix('{')?.split_once("}:")?;
        if subject == NOBODY {
            return Some(("", scope));
        }
        Subject::parse(subject).map(|_| (subject, scope))
    }

    /// A pattern that matches the counters of subjects that begin so.
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

    /// The nodes of the deployment.
    pub(crate) fn nodes(&self) -> String {
        format!("{}nodes", self.prefix)
    }

    /// What was stored as exceptions for clients.
    pub(crate) fn overrides(&self) -> String {
        format!("{}overrides", self.prefix)
    }

    /// Who changed what. Its tag is the key of the overrides, beside which it lives in a cluster: both change in
    /// one call.
    pub(crate) fn audit(&self) -> String {
        format!("{}audit{{{}}}", self.prefix, self.overrides())
    }

    /// What nodes counted lately.
    pub(crate) fn node_reports(&self) -> String {
        format!("{}reports", self.prefix)
    }

    /// How a node fares, in the slot of the pulses.
    pub(crate) fn node_state(&self, node: &str) -> String {
        format!("{}node{{{}}}:{node}", self.prefix, self.node_reports())
    }

    /// Where changes are told.
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
    fn keys_can_be_read_by_people() {
        let subject = Subject::in_tenant("acme", ["user 1"]);
        let key = keys().counter(subject.as_str(), "tdefault/60s");
        assert_eq!(key, b"rl:{acme:user%201}:tdefault/60s");
        assert_eq!(keys().counter("", "tdefault/60s"), b"rl:{%}:tdefault/60s");
        assert_eq!(keys().pattern(":a*"), "rl:{:a\\**");
    }

    #[test]
    fn foreign_keys_are_not_ours() {
        for key in ["rl:nodes", "rl:{:a", "x:{:a}:tdefault/60s", "rl:{a b}:tdefault/60s"] {
            assert_eq!(keys().parts(key.as_bytes()), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn every_key_tells_its_subject(facts in prop::collection::vec(any::<Vec<u8>>(), 0..4)) {
            let subject = Subject::of(&facts);
            let key = keys().counter(subject.as_str(), "tdefault/60s");
            prop_assert_eq!(keys().parts(&key), Some((subject.as_str(), "tdefault/60s")));
            let tag = key.iter().filter(|byte| b"{}".contains(byte)).count();
            prop_assert_eq!(tag, 2);
        }
    }
}
