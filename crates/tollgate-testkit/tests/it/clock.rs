//! A wall clock that is wrong, and a server that believes it.

use std::time::Duration;

use tollgate_testkit::clock::{Clock, Shift};
use tollgate_testkit::server::{Flavor, Server};

const HOUR: Duration = Duration::from_secs(3600);
/// What a slow machine may take between two questions.
const SLACK: u64 = 60;

fn seconds(server: &Server) -> u64 {
    server.raw().call(&["TIME"]).array()[0].text().parse().expect("seconds")
}

#[test]
fn a_server_lives_by_the_clock_it_is_given() {
    let clock = Clock::new();
    let right = Server::start(Flavor::Redis);
    let wrong = Server::builder(Flavor::Redis).clock(&clock).start();
    let ahead = |expected: u64| {
        let (wrong, right) = (seconds(&wrong) + HOUR.as_secs(), seconds(&right));
        assert!((right + expected).abs_diff(wrong) < SLACK, "{right} and {wrong}");
    };
    ahead(HOUR.as_secs());
    clock.set(Shift::Ahead(HOUR));
    ahead(2 * HOUR.as_secs());
    clock.set(Shift::Behind(HOUR));
    ahead(0);
    // What it waits for by the other clock is not disturbed.
    assert!(wrong.raw().call(&["BLPOP", "nothing", "0.01"]).is_nil());
    wrong.restart();
    ahead(0);
}
