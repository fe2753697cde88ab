//! Tests of the inbound layer.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests and their helpers fail by panicking"
)]

mod client_disconnects;
mod concurrency;
mod cost;
mod decision;
mod delayed_store;
mod errors;
mod facts;
mod fixture;
mod grpc;
mod headers;
mod refusals;
mod shared_layer;
mod skips;
