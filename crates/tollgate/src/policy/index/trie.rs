//! A trie of patterns for paths and descriptors, by segment.

use smallvec::{SmallVec, smallvec};

use crate::policy::path::Syntax;
use crate::policy::wildcard::Literal;

use super::{Candidates, List, Map, push};

/// One segment of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum TrieStep {
    Literal(Literal),
    /// An entry of a descriptor with this key, as `key=`, and any value.
    Key(Literal),
    /// Any one segment.
    Any,
    /// Any number of segments, up to the end of the path.
    Rest,
}

/// A trie of path patterns. Patterns with a common prefix share its nodes.
#[derive(Debug, Default)]
pub(super) struct Trie {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    literals: Map<Literal, usize>,
    keys: Map<Literal, usize>,
    any: Option<usize>,
    /// Rules whose pattern ends here.
    here: List,
    /// Rules whose pattern continues with any number of segments.
    rest: List,
}

impl Trie {
    pub(super) fn insert(&mut self, number: u32, steps: &[TrieStep]) {
        let mut current = self.ensure_node(0);
        for step in steps {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(current) else { return };
            current = match step {
                TrieStep::Literal(text) => *node.literals.entry(text.clone()).or_insert(next),
                TrieStep::Key(key) => *node.keys.entry(key.clone()).or_insert(next),
                TrieStep::Any => *node.any.get_or_insert(next),
                TrieStep::Rest => {
                    push(&mut node.rest, number);
                    return;
                }
            };
            self.ensure_node(current);
        }
        if let Some(node) = self.nodes.get_mut(current) {
            push(&mut node.here, number);
        }
    }

    /// Adds the node `number` if it is the next one, and returns `number`.
    fn ensure_node(&mut self, number: usize) -> usize {
        if number == self.nodes.len() {
            self.nodes.push(Node::default());
        }
        number
    }

    pub(super) fn lookup<'i>(&'i self, value: &[u8], syntax: Syntax, found: &mut Candidates<'i>) {
        if self.nodes.is_empty() {
            return;
        }
        let Some(segments) = syntax.segments(value) else { return };
        // The nodes that the path so far leads to. There can be several, through literals and through `Any`.
        let mut level: SmallVec<[usize; 8]> = smallvec![0];
        for segment in segments {
            let mut next = SmallVec::new();
            for node in level.iter().filter_map(|number| self.nodes.get(*number)) {
                found.add(&node.rest);
                next.extend(node.literals.get(segment).copied());
                if !node.keys.is_empty() {
                    next.extend(key_of(segment).and_then(|key| node.keys.get(key)).copied());
                }
                next.extend(node.any);
            }
            level = next;
        }
        for node in level.iter().filter_map(|number| self.nodes.get(*number)) {
            found.add(&node.rest);
            found.add(&node.here);
        }
    }
}

/// Returns the start of an entry of a descriptor up to its first `=`. Keys contain none, because it is escaped.
pub(super) fn key_of(entry: &[u8]) -> Option<&[u8]> {
    let end = entry.iter().position(|byte| *byte == b'=')?;
    entry.get(..=end)
}
