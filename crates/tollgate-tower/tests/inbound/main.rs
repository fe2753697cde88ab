//! The inbound layer, one file per promise.

mod concurrency;
mod cost;
mod errors;
mod facts;
mod fixture;
mod grpc;
mod headers;
mod refusals;
mod sharing;
mod skips;
