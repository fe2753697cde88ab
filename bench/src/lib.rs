//! Measures tollgate beside its peers, in one process and one run.
//!
//! A [`pass`] is one timed stretch of decisions of one [`entrant`], with [`keys`] drawn in one way.
//! [`speed`], [`fullness`], [`pauses`] and [`memory`] repeat passes and keep every [`rounds`]' figure;
//! [`report`] puts them into one [`markdown`] document.

pub mod cli;
pub mod document;
pub mod entrant;
pub mod floor;
pub mod fullness;
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
