//! The testkit's own parts that run processes and threads.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, also where they share a step"
)]

mod clock;
mod cluster;
mod proxy;
mod sentinels;
mod server;
mod tls;

use std::thread;

use tollgate_testkit::server::Flavor;

/// Tests something with each flavor, at the same time: they wait more than they work.
fn with_each(test: impl Fn(Flavor) + Sync) {
    thread::scope(|scope| {
        for flavor in Flavor::ALL {
            let test = &test;
            scope.spawn(move || test(flavor));
        }
    });
}
