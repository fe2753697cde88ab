//! A wall clock that is wrong, and a server that believes it.

use std::time::Duration;

use tollgate_testkit::clock::{Clock, Shift};
use tollgate_testkit::server::Server;
use tollgate_testkit::wait::eventually;

use crate::with_each;

const HOUR: Duration = Duration::from_secs(3600);
/// What a slow machine may take between two questions.
const SLACK: u64 = 60;

fn seconds(server: &Server) -> u64 {
    server.raw().call(&["TIME"]).array()[0].text().parse().expect("seconds")
}

#[test]
fn a_server_lives_by_the_clock_it_is_given() {
    with_each(|flavor| {
        let clock = Clock::new();
        let right = Server::start(flavor);
        let wrong = Server::builder(flavor).clock(&clock).start();
        // Some look at the clock only now and then.
        let wait = |hours: u64| {
            eventually("the clock is looked at", || {
                let right = seconds(&right) + hours * HOUR.as_secs();
                right.abs_diff(seconds(&wrong) + HOUR.as_secs()) < SLACK
            });
        };
        wait(1);
        clock.set(Shift::Ahead(HOUR));
        wait(2);
        clock.set(Shift::Behind(HOUR));
        wait(0);
        // What it waits for by the other clock is not disturbed.
        assert!(wrong.raw().call(&["BLPOP", "nothing", "0.01"]).is_nil(), "{flavor}");
        wrong.restart();
        wait(0);
    });
}
