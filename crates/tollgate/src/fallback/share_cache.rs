//! Cache of this node's shares of limits.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use crate::limit::Limit;

/// Maximum number of cached shares. Inline limits of requests are unbounded in number.
const MAX_SHARES: usize = 4096;

/// Shares of limits for the current number of nodes, each computed once.
#[derive(Debug)]
pub(super) struct ShareCache {
    shares: RwLock<Shares>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Shares {
    nodes: NonZeroU32,
    /// By the hash of the limit. Of two limits with the same hash, the last.
    by_hash: HashMap<u64, NodeShare>,
}

/// A limit, and one node's share of it.
#[derive(Debug, Clone)]
pub(super) struct NodeShare {
    pub(super) limit: Arc<Limit>,
    pub(super) share: Arc<Limit>,
    /// Number of nodes that the limit is divided by.
    pub(super) nodes: NonZeroU32,
}

impl ShareCache {
    pub(super) fn new(nodes: NonZeroU32) -> Self {
        let shares = RwLock::new(Shares { nodes, by_hash: HashMap::new() });
        Self { shares, hasher: RandomState::default() }
    }

    pub(super) fn nodes(&self) -> NonZeroU32 {
        self.shares.read().nodes
    }

    pub(super) fn set_nodes(&self, nodes: NonZeroU32) {
        if self.nodes() != nodes {
            *self.shares.write() = Shares { nodes, by_hash: HashMap::new() };
        }
    }

    /// Returns this node's share of a limit.
    pub(super) fn get(&self, limit: &Limit) -> NodeShare {
        let hash = self.hasher.hash_one((limit.rule(), limit.name(), limit.count()));
        let shares = self.shares.read();
        if let Some(cached) = shares.by_hash.get(&hash).filter(|cached| *cached.limit == *limit) {
            return cached.clone();
        }
        drop(shares);
        let mut shares = self.shares.write();
        if shares.by_hash.len() >= MAX_SHARES {
            shares.by_hash.clear();
        }
        let nodes = shares.nodes;
        let share = Arc::new(limit.share(nodes));
        let share = NodeShare { limit: Arc::new(limit.clone()), share, nodes };
        shares.by_hash.insert(hash, share.clone());
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Quota;

    #[test]
    fn share_is_computed_once_per_node_count() {
        let [one, three] = [1, 3].map(|nodes| NonZeroU32::new(nodes).unwrap());
        let (cache, limit) =
            (ShareCache::new(one), Limit::fixed_window(Quota::per_minute(10)).unwrap());
        assert_eq!(cache.get(&limit).share.count(), 10);
        cache.set_nodes(three);
        let NodeShare { share, nodes, .. } = cache.get(&limit);
        assert_eq!((share.count(), nodes), (4, three));
        cache.set_nodes(three);
        assert!(Arc::ptr_eq(&share, &cache.get(&limit).share));
        let sliding = Limit::sliding_window(Quota::per_minute(10)).unwrap();
        assert_eq!(cache.get(&sliding).share.algorithm(), sliding.algorithm());
    }

    #[test]
    fn cache_size_is_bounded() {
        let cache = ShareCache::new(NonZeroU32::MIN);
        for count in 1..10_000 {
            let _ = cache.get(&Limit::fixed_window(Quota::per_minute(count)).unwrap());
        }
        assert!(cache.shares.read().by_hash.len() <= MAX_SHARES);
    }
}
