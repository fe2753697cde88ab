//! The testkit's own parts that run processes and threads.

mod server;
