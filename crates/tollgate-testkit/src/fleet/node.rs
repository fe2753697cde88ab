//! A node: its present process.

use std::num::NonZeroU32;
use std::sync::Arc;

use tollgate::{FallbackStore, ManualClock};

use super::node_store::NodeStore;
use super::world::World;

/// Maximum number of keys that a node counts while the store is lost.
const MAX_LOCAL_KEYS: usize = 10_000;

pub(super) struct Node<'w> {
    pub(super) store: Arc<FallbackStore<NodeStore<'w>, ManualClock>>,
    pub(super) process: u64,
    pub(super) is_maintaining: bool,
}

impl<'w> Node<'w> {
    pub(super) fn new(world: &'w World, number: usize, process: u64) -> Self {
        let nodes = u32::try_from(world.scenario.nodes).ok().and_then(NonZeroU32::new);
        let store = FallbackStore::builder(NodeStore::new(world, number))
            .clock(world.clock.clone())
            .nodes(nodes.unwrap_or(NonZeroU32::MIN))
            .max_keys(MAX_LOCAL_KEYS)
            .build();
        Self { store: Arc::new(store), process, is_maintaining: false }
    }
}
