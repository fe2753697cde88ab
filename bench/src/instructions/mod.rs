//! Instruction counts of the paths that every user pays for, compared with a committed baseline.
//!
//! A `path` is run twice under `callgrind`, with different numbers of decisions; the difference of the two counts is
//! the cost of the decisions alone, without start-up. Paths of the library run in this program (`in_process`, and
//! `redis_store` with a server), those of the front ends in a server process (`served`). A `comparison` with the `baseline` fails if a path has grown by
//! more than 5 %.

pub mod baseline;
mod callgrind;
pub mod comparison;
pub mod in_process;
pub mod measurement;
pub mod path;
mod redis_store;
mod served;
