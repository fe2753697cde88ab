//! The inbound layer, one file per promise.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, and their helpers too"
)]

mod clients_gone;
mod concurrency;
mod cost;
mod errors;
mod facts;
mod fixture;
mod grpc;
mod headers;
mod later;
mod refusals;
mod shared_layer;
mod skips;
