//! The testkit's own parts that run processes and threads.

#![allow(clippy::expect_used, reason = "tests fail by panicking, also where they share a step")]

mod proxy;
mod server;
