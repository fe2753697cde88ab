//! Traces: the only tests of the feature `otel`, which released binaries do not have. All other tests run with the
//! released features.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code fails by panicking"
)]

#[path = "../it/client.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use all of it")]
mod client;
mod collector;
#[path = "../it/grpc_client.rs"]
#[expect(dead_code, unused_imports, reason = "shared with the other tests, which use all of it")]
mod grpc_client;
#[path = "../it/service.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use all of it")]
mod service;
mod spans;
