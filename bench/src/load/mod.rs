//! The load generator for servers over TCP, and the comparison of several servers.
//!
//! A [`candidate`] is a running [`server`](crate::server) and its requests. The generator executes one [`task`] in its
//! own process ([`run`]): each connection sends its next requests as soon as it has all responses. A [`codec`] encodes
//! requests, mostly from a [`template`], and decodes responses. The process reads the server's [`cpu`](crate::cpu) time
//! and prints a [`sample`]. A [`runner`] runs every candidate once per round and collects the [`figures`], which a
//! [`comparison`] shows beside each other. A separate run counts [`system_calls`].

pub mod candidate;
pub mod codec;
pub mod comparison;
mod connection;
pub mod exchange;
pub mod figures;
pub mod run;
mod run_state;
pub mod runner;
pub mod sample;
pub mod scale;
pub mod system_calls;
pub mod task;
pub mod template;
