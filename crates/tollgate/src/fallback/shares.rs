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

#[derive(Debug)]
struct Part {
    whole: Limit,
    part: Arc<Limit>,
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

    /// This node's part of a limit, and of how many.
    pub(super) fn of(&self, limit: &Limit) -> (Arc<Limit>, NonZeroU32) {
        let hash = self.hasher.hash_one((limit.rule(), limit.name(), limit.count()));
        let parts = self.parts.read();
        if let Some(known) = parts.known.get(&hash).filter(|known| known.whole == *limit) {
            return (Arc::clone(&known.part), parts.nodes);
        }
        drop(parts);
        let mut parts = self.parts.write();
        if parts.known.len() >= MOST {
            parts.known.clear();
        }
        let part = Arc::new(limit.share(parts.nodes));
        parts.known.insert(hash, Part { whole: limit.clone(), part: Arc::clone(&part) });
        (part, parts.nodes)
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
        assert_eq!(shares.of(&limit).0.count(), 10);
        shares.set_nodes(three);
        let (part, nodes) = shares.of(&limit);
        assert_eq!((part.count(), nodes), (4, three));
        shares.set_nodes(three);
        assert!(Arc::ptr_eq(&part, &shares.of(&limit).0));
        let other = Limit::sliding_window(Quota::per_minute(10)).unwrap();
        assert_eq!(shares.of(&other).0.algorithm(), other.algorithm());
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
