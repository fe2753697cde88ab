//! Benchmarks of the gRPC server, compared with two peers and a constant response, each in its own process.
//!
//! A [`candidate`] is one of the servers. The [`load`](crate::load) generator sends a [`call`] with a [`codec`], which
//! writes HTTP/2 [`frame`]s itself: a client library would need as much CPU time as the server. The baseline is
//! [`constant`]. A [`report`] collects the figures by number of concurrent streams.

pub mod call;
pub mod candidate;
pub mod codec;
pub mod constant;
pub mod frame;
pub mod messages;
pub mod report;
