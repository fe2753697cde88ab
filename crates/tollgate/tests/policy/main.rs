//! Tests of policies, one file per topic.

#![cfg(feature = "policy")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking, and their helpers too"
)]

mod allocation;
mod descriptors;
mod documentation;
mod errors;
mod fuzz;
mod helpers;
mod import;
mod index;
mod matching;
mod one_limit;
mod overrides;
mod own_limits;
mod planning;
mod subjects;
mod units;
