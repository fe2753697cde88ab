//! Breaks what tollgate stands on, row by row, and tells what its users then see.
//!
//! A [`row`] is one fault: it starts real servers and real nodes on a [`stage`], breaks something while
//! [`load`] goes on, and holds what was heard against what must be. The [`rows`] are those of the table that
//! [`table`] prints. After each the [`canary`] is looked for in all that the nodes said.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::must_use_candidate,
    clippy::missing_panics_doc,
    reason = "this is test code: it fails by panicking, at once and by name"
)]

pub mod administered;
pub mod canary;
pub mod cli;
pub mod client;
pub mod disk;
pub mod everywhere;
pub mod fleet;
pub mod load;
pub mod node;
pub mod passage;
pub mod policy;
pub mod redis;
pub mod row;
pub mod rows;
pub mod run;
pub mod scratch;
pub mod setup;
pub mod slow;
pub mod stage;
pub mod table;
pub mod tally;
