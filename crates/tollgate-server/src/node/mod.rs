//! This node: its shared state, and the background tasks that keep it current (node reports, policy reloads, saved
//! state, store maintenance).

mod context;
mod duplicate_node;
pub(crate) mod history;
pub(crate) mod live;
mod live_node_count;
pub(crate) mod notify;
pub(crate) mod overrides;
mod redis_copy;
pub(crate) mod reload;
pub(crate) mod report;
mod saved_state;
pub(crate) mod store_maintenance;
mod warnings;

pub(crate) use context::{Identity, NodeContext, NodeLimiter, NodeSeries, PolicyLoad};
pub(crate) use redis_copy::RedisCopy;
pub(crate) use saved_state::SavedState;
