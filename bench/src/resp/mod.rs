//! Benchmarks of the RESP server, compared with a peer, with Redis itself and with a constant reply, each in its own
//! process.
//!
//! A [`candidate`] is one of the servers. The [`load`](crate::load) generator sends a [`command`] with a [`codec`] and
//! checks each reply. The baseline is [`constant`]. A [`report`] collects the figures by length of pipelines.

pub mod candidate;
pub mod codec;
pub mod command;
pub mod constant;
pub mod report;
