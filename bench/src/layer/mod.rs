//! Cost of the Tower layer in front of an axum route, compared with `tower_governor`.

pub(crate) mod candidate;
pub mod report;
mod runner;
