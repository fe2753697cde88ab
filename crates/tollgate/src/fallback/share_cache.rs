//! This node's parts of limits, made once each.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use crate::limit::Limit;

/// Limits that come with requests may be without number.
const MOST: usize = 4096;

/// The parts of one among so many nodes.
#[derive(Debug)]
pub(super) struct Shares {
    parts: RwLock<Parts>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Parts {
    nodes: NonZeroU32,
    /// By the hash of the limit; of two with the same, the last.
    known: HashMap<u64, Part>,
}

/// A limit, and this node's part of it as one among so many.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) whole: Arc<Limit>,
    pub(super) part: Arc<Limit>,
    pub(super) nodes: NonZeroU32,
}

impl Shares {
    pub(super) fn new(nodes: NonZeroU32) -> Self {
        let parts = RwLock::new(Parts { nodes, known: HashMap::new() });
        Self { parts, hasher: RandomState::default() }
    }

    pub(super) fn nodes(&self) -> NonZeroU32 {
        self.parts.read().nodes
    }

    pub(super) fn set_nodes(&self, nodes: NonZeroU32) {
        if self.nodes() != nodes {
            *self.parts.write() = Parts { nodes, known: HashMap::new() };
        }
    }

    /// This node's part of a limit.
    pub(super) fn of(&self, limit: &Limit) -> Part {
        let hash = self.hasher.hash_one((limit.rule(), limit.name(), limit.count()));
        let parts = self.parts.read();
        if let Some(known) = parts.known.get(&hash).filter(|known| *known.whole == *limit) {
            return known.clone();
        }
        drop(parts);
        let mut parts = self.parts.write();
        if parts.known.len() >= MOST {
            parts.known.clear();
        }
        let nodes = parts.nodes;
        let part = Arc::new(limit.share(nodes));
        let part = Part { whole: Arc::new(limit.clone()), part, nodes };
        parts.known.insert(hash, part.clone());
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Quota;

    #[test]
    fn a_part_is_made_once_until_the_nodes_change() {
        let [one, three] = [1, 3].map(|nodes| NonZeroU32::new(nodes).unwrap());
        let (shares, limit) =
            (Shares::new(one), Limit::fixed_window(Quota::per_minute(10)).unwrap());
        assert_eq!(shares.of(&limit).part.count(), 10);
        shares.set_nodes(three);
        let Part { part, nodes, .. } = shares.of(&limit);
        assert_eq!((part.count(), nodes), (4, three));
        shares.set_nodes(three);
        assert!(Arc::ptr_eq(&part, &shares.of(&limit).part));
        let other = Limit::sliding_window(Quota::per_minute(10)).unwrap();
        assert_eq!(shares.of(&other).part.algorithm(), other.algorithm());
    }

    #[test]
    fn strangers_limits_do_not_fill_the_memory() {
        let shares = Shares::new(NonZeroU32::MIN);
        for count in 1..10_000 {
            let _ = shares.of(&Limit::fixed_window(Quota::per_minute(count)).unwrap());
        }
        assert!(shares.parts.read().known.len() <= MOST);
    }
}
