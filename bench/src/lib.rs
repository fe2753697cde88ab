//! Measures tollgate beside its peers, side by side in one run.
//!
//! The core library is measured in one process: a [`pass`] is one timed stretch of decisions of one
//! [`entrant`], with [`keys`] drawn in one way. [`speed`], [`fullness`], [`pauses`] and [`memory`] repeat
//! passes and keep every [`rounds`]' figure; [`report`] gathers them. Servers are measured by [`http`].
//! What they have in common is the command line in [`cli`], and the [`document`] of [`markdown`] tables.

pub mod cli;
pub mod document;
pub mod entrant;
pub mod floor;
pub mod fullness;
pub mod http;
pub mod keys;
pub mod limiter;
pub mod machine;
pub mod markdown;
pub mod memory;
pub mod pass;
pub mod pauses;
pub mod report;
pub mod rounds;
pub mod scale;
pub mod speed;
pub mod workload;

/// What a measurement gives, or why there is none.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
