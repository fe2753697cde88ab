//! Tests of the testkit's servers, proxy and clock.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests and their helpers fail by panicking"
)]

mod clock;
mod cluster;
mod proxy;
mod sentinels;
mod server;
mod tls;

use std::thread;

use tollgate_testkit::server::Flavor;

/// Runs a test with all flavors concurrently, because such tests mostly wait.
fn with_each(test: impl Fn(Flavor) + Sync) {
    thread::scope(|scope| {
        for flavor in Flavor::ALL {
            let test = &test;
            scope.spawn(move || test(flavor));
        }
    });
}
