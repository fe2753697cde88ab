//! Measures tollgate beside its peers, side by side in one run.
//!
//! The core library is measured in one process: a [`timed_run`] is one timed stretch of decisions of one
//! [`entrant`], with [`keys`] drawn in one way. [`speed`], [`fullness`], [`pauses`] and [`memory`] repeat
//! passes and keep every [`rounds`]' figure; [`report`] gathers them. A [`server`] in a process of its own is
//! measured by [`http`] and by [`redis`], each with a load that counts [`latencies`] within a [`window`].
//! A [`layer`]
//! is measured in process too, before a route of axum; a [`page`] by what it costs a busy node. What they have in common is the command line in [`cli`], and the [`document`] of [`markdown`] tables.

pub mod cli;
pub mod cpu;
pub mod document;
pub mod entrant;
pub mod floor;
pub mod fullness;
pub mod http;
pub mod keys;
pub mod latencies;
pub mod layer;
pub mod limiter;
pub mod lines;
pub mod machine;
pub mod markdown;
pub mod memory;
pub mod page;
pub mod pauses;
pub mod redis;
pub mod report;
pub mod rounds;
pub mod scale;
pub mod server;
pub mod speed;
pub mod timed_run;
pub mod window;
pub mod work;
pub mod workload;

/// What a measurement gives, or why there is none.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
