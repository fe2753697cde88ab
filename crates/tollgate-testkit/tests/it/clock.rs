//! A server with a shifted wall clock.

use std::time::Duration;

use tollgate_testkit::clock::{Clock, Shift};
use tollgate_testkit::server::Server;
use tollgate_testkit::wait::eventually;

use crate::with_each;

const HOUR: Duration = Duration::from_secs(3600);
/// The slack of a slow machine between two reads, in seconds.
const SLACK: u64 = 60;

fn seconds(server: &Server) -> u64 {
    server.raw().call(&["TIME"]).array()[0].text().parse().expect("seconds")
}

#[test]
fn server_uses_the_given_clock() {
    with_each(|flavor| {
        let clock = Clock::new();
        let control = Server::start(flavor);
        let shifted = Server::builder(flavor).clock(&clock).start();
        // A server may read the clock with a delay.
        let wait = |hours: u64| {
            eventually("the server uses the new clock", || {
                let expected = seconds(&control) + hours * HOUR.as_secs();
                expected.abs_diff(seconds(&shifted) + HOUR.as_secs()) < SLACK
            });
        };
        wait(1);
        clock.set(Shift::Ahead(HOUR));
        wait(2);
        clock.set(Shift::Behind(HOUR));
        wait(0);
        // Waits by the monotonic clock are not affected.
        assert!(shifted.raw().call(&["BLPOP", "nothing", "0.01"]).is_nil(), "{flavor}");
        shifted.restart();
        wait(0);
    });
}
