//! Path patterns, segment by segment.

use smallvec::{SmallVec, smallvec};

use crate::policy::path;
use crate::policy::wildcard::Literal;

use super::{Candidates, List, Map, push};

/// One segment of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum TrieStep {
    Literal(Literal),
    /// One segment, whatever it is.
    Any,
    /// Any number of segments, and whatever follows.
    Rest,
}

/// Patterns that begin alike share their beginning.
#[derive(Debug, Default)]
pub(super) struct Trie {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    literals: Map<Literal, usize>,
    any: Option<usize>,
    /// Patterns that end here.
    here: List,
    /// Patterns that go on with any number of segments.
    rest: List,
}

impl Trie {
    pub(super) fn file(&mut self, number: u32, steps: &[TrieStep]) {
        let mut place = self.grown_to(0);
        for step in steps {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(place) else { return };
            place = match step {
                TrieStep::Literal(text) => *node.literals.entry(text.clone()).or_insert(next),
                TrieStep::Any => *node.any.get_or_insert(next),
                TrieStep::Rest => {
                    push(&mut node.rest, number);
                    return;
                }
            };
            self.grown_to(place);
        }
        if let Some(node) = self.nodes.get_mut(place) {
            push(&mut node.here, number);
        }
    }

    /// Makes sure that there is a node of this number.
    fn grown_to(&mut self, number: usize) -> usize {
        if number == self.nodes.len() {
            self.nodes.push(Node::default());
        }
        number
    }

    pub(super) fn look_up<'i>(&'i self, value: &[u8], found: &mut Candidates<'i>) {
        if self.nodes.is_empty() {
            return;
        }
        let Some(segments) = path::segments(value) else { return };
        // All nodes that the path so far leads to: a literal and a wildcard may both.
        let mut level: SmallVec<[usize; 8]> = smallvec![0];
        for segment in segments {
            let mut next = SmallVec::new();
            for node in level.iter().filter_map(|number| self.nodes.get(*number)) {
                found.add(&node.rest);
                next.extend(node.literals.get(segment).copied());
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
