//! Benchmarks of the HTTP server, compared with a peer and a constant response, each in its own process.
//!
//! A [`candidate`] is one of the servers; tollgate also has a [`policy`]. The [`load`](crate::load) generator sends
//! requests with a [`codec`] and checks each [`response`]. A [`runner`] runs every candidate once per round. The
//! measurements are [`comparison`], [`key_counts`] and [`policies`], collected in [`report`].

pub mod candidate;
pub mod codec;
pub mod comparison;
pub mod constant;
pub mod key_counts;
pub mod policies;
pub mod policy;
pub mod report;
pub mod response;
pub mod runner;
pub mod scale;
