//! Benchmarks of tollgate and comparable rate limiters, interleaved in one run.
//!
//! - Core library, in process: a [`timed_run`] times decisions of one [`candidate`] for a choice of
//!   [`keys`]. [`speed`], [`near_cap`], [`pauses`] and [`memory`] repeat runs and keep one figure per
//!   round ([`rounds`]); [`report`] collects them.
//! - [`http`], [`resp`], [`grpc`] and [`redis`] measure a [`server`] in its own process, with a load generator that records
//!   [`latencies`] within a [`window`]. That of the front ends is [`load`]; [`throttlecrab_server`] is a peer of all of them.
//! - [`auth`] measures forward auth behind nginx, with the same load generator.
//! - [`growth`] measures how the time of a decision grows with the number of keys, rules, limits and threads.
//! - [`instructions`] counts the instructions of eight paths and compares them with a committed baseline.
//! - [`layer`] measures the Tower layer in front of an axum route, in process.
//! - [`page`] measures the cost of the dashboard for a busy node.
//! - [`replay`] measures `tollgate replay` on a generated access log.
//! - [`peer_chart`] draws the chart of the README from the written figures.
//!
//! All share the command line in [`cli`] and produce a [`document`] of [`markdown`] tables.

pub mod auth;
pub mod candidate;
pub mod cli;
pub mod config_file;
pub mod cpu;
pub mod document;
pub mod figure_lines;
pub mod floor;
pub mod growth;
pub mod grpc;
pub mod http;
pub mod instructions;
pub mod keys;
pub mod latencies;
pub mod layer;
pub mod limiter;
pub mod load;
pub mod load_mode;
pub mod machine;
pub mod markdown;
pub mod memory;
pub mod near_cap;
pub mod page;
pub mod pauses;
pub mod peer_chart;
pub mod redis;
pub mod redis_server;
pub mod replay;
pub mod report;
pub mod resp;
pub mod rounds;
pub mod scale;
pub mod server;
pub mod speed;
pub mod svg;
pub mod throttlecrab_server;
pub mod timed_run;
pub mod window;
pub mod workload;

/// The result of a measurement, or the reason why it failed.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
