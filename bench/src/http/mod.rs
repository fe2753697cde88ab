//! Measures HTTP servers, each in a process of its own.
//!
//! The [`load`] does one [`task`] in another process: it sends each [`request`] as soon as it has the
//! last [`answer`], reads the server's [`cpu`] time and prints a [`sample`].

pub mod answer;
mod connection;
pub mod constant;
mod course;
pub mod cpu;
pub mod load;
pub mod request;
pub mod sample;
pub mod task;
