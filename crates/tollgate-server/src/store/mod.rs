//! The store of this node: memory, or Redis with fallback. Setup, failure log, and listing of stored keys.

mod backend;
mod key_listing;
pub(crate) mod log_intervals;
mod setup;
mod watch;

pub(crate) use backend::Backend;
pub(crate) use key_listing::{CountedBy, KeyListing, KeyPage, KeySelection};
pub(crate) use setup::{StoreInfo, StoreSetup};
pub(crate) use watch::StoreWatch;
