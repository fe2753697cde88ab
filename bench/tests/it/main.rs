//! Runs the benchmarks end to end, with real processes. No test depends on speed. One binary, because each links every
//! peer.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod chart;
mod fake_program;
mod growth;
mod grpc;
mod http;
mod in_process;
mod instructions;
mod redis;
mod resp;
