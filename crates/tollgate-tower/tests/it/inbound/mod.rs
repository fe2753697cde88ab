//! Tests of the inbound layer.

mod allocation;
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
mod reservations;
mod shared_layer;
mod single_limit;
mod skips;
mod upgrades;
