//! References that are generated from the code, and the tests that fail when a committed reference is stale.
//!
//! `scripts/references` writes them again: `UPDATE_SNAPSHOTS=1` makes the tests write instead of compare.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code fails by panicking"
)]

mod cli;
pub(crate) mod names;
mod openapi;
mod operations;
mod ordered_json;
pub(crate) mod overrides;
mod policy;
mod schemas;
mod serde_fields;
mod settings;
mod snapshot;

pub(crate) use schemas::describe_capacity;
