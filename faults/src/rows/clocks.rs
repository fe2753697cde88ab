//! Wall clock steps: of a node, which must have no effect, and of Redis, whose clock decides.

use std::time::{Duration, Instant, SystemTime};

use tollgate_testkit::clock::{Clock, Shift};
use tollgate_testkit::server::Server;
use tollgate_testkit::wait::eventually;

use crate::client::{inline, inline_within};
use crate::load::Load;
use crate::node::Node;
use crate::redis;
use crate::stage::Stage;
use crate::table::format_time;

const HOUR: Duration = Duration::from_secs(3600);
const ALGORITHMS: [&str; 4] = ["token_bucket", "sliding_window", "sliding_counter", "fixed_window"];

/// The limit per window. A token takes minutes to refill in a window of an hour.
const LIMIT: u64 = 10;

pub(super) fn wall_clock_of_a_node_has_no_effect(stage: &Stage) -> String {
    let server = redis::start();
    let clock = Clock::new();
    let mut decisions = 0;
    for kind in ["memory", "redis"] {
        let setup = || match kind {
            "memory" => stage.node(),
            _ => stage.node().redis(&redis::url(&server)).patient(),
        };
        let (stepping, control) = (setup().clock(&clock).start(), setup().start());
        clock.set(Shift::Ahead(HOUR));
        assert_ne!(log_hour(&stepping), log_hour(&control), "the node uses the stepping clock");
        for algorithm in ALGORITHMS {
            for (number, shift) in (0..).zip(steps()) {
                clock.set(shift);
                let decide = |node: &Node, prefix: &str| {
                    let client = format!("{prefix}-{algorithm}");
                    decision(node, &inline(&client, 1 + number % 2, algorithm, LIMIT))
                };
                let [stepped, expected] =
                    [decide(&stepping, "stepped"), decide(&control, "control")];
                assert_eq!(stepped, expected, "{kind}, {algorithm}, step {number}: {shift:?}");
                decisions += 1;
            }
        }
        clock.set(Shift::None);
    }
    format!(
        "{decisions} decisions in memory and on Redis while the node's clock stepped: all as without steps"
    )
}

/// The date and the hour of a new log line.
fn log_hour(node: &Node) -> String {
    let before = node.log().len();
    node.set_limit("logged", 1);
    eventually("the change is logged", || node.log()[before..].contains("logged"));
    let log = node.log();
    log[before..].chars().take("2026-01-01T00".len()).collect()
}

/// Clock steps ahead, behind and back.
fn steps() -> Vec<Shift> {
    let (ahead, behind) = (Shift::Ahead(HOUR), Shift::Behind(HOUR));
    [ahead, Shift::None, behind, ahead, behind, Shift::None].repeat(2)
}

/// A decision without its times, which differ between requests: allowed, count, remaining, no retry time.
fn decision(node: &Node, query: &str) -> (bool, u64, u64, bool) {
    let reply = node.post("/check", query);
    assert!(reply.is_exact(), "{}", reply.body);
    let json = reply.json();
    let number = |field: &str| json[field].as_u64().expect("a number");
    (reply.is_allowed(), number("count"), number("remaining"), json["retry_after_ms"].is_null())
}

/// The refill time of the limits: short enough to wait for.
const REFILL: Duration = Duration::from_secs(2);

pub(super) fn clock_step_of_redis_costs_at_most_one_refill(stage: &Stage) -> String {
    let clock = Clock::new();
    let server = redis::builder().clock(&clock).start();
    let node = stage.node().redis(&redis::url(&server)).patient().start();
    let queries = ALGORITHMS.map(|name| inline_within(name, 1, (name, LIMIT, REFILL)));
    // Exactly the limit, without a refusal: a node with a cached refusal would not call Redis.
    for (algorithm, query) in ALGORITHMS.iter().zip(&queries) {
        assert_eq!(send(&node, query, LIMIT).admitted, LIMIT, "{algorithm}");
    }
    step(&clock, &server, Shift::Ahead(HOUR));
    let extra = queries.each_ref().map(|query| exhaust(&node, query));
    step(&clock, &server, Shift::None);
    let first = wait_all_allowed(&node, &queries);
    // Also from the right time to an hour behind.
    for query in &queries {
        exhaust(&node, query);
    }
    step(&clock, &server, Shift::Behind(HOUR));
    let second = wait_all_allowed(&node, &queries);
    let mut seen = Vec::new();
    for (index, algorithm) in ALGORITHMS.into_iter().enumerate() {
        let (extra, denied) = (extra[index], first[index].max(second[index]));
        check_bounds(stage, algorithm, extra, denied);
        seen.push(format!(
            "{algorithm} {} extra, denied for {}",
            extra.admitted,
            format_time(denied)
        ));
    }
    format!("bursts of {LIMIT}, refilled in {REFILL:?}: {}", seen.join("; "))
}

/// Sets the clock of a server, and waits until the server uses it.
fn step(clock: &Clock, server: &Server, shift: Shift) {
    clock.set(shift);
    let now = SystemTime::UNIX_EPOCH.elapsed().expect("the time is after 1970");
    let expected = match shift {
        Shift::None => now,
        Shift::Ahead(by) => now + by,
        Shift::Behind(by) => now - by,
    };
    eventually("the server uses the new clock", || {
        let time = server.raw().call(&["TIME"]).array()[0].text().parse::<u64>();
        time.is_ok_and(|time| time.abs_diff(expected.as_secs()) < HOUR.as_secs() / 2)
    });
}

/// The number of admitted requests, and the time that sending took.
#[derive(Debug, Clone, Copy)]
struct Burst {
    admitted: u64,
    took: Duration,
}

/// Sends three times the limit.
fn exhaust(node: &Node, query: &str) -> Burst {
    send(node, query, 3 * LIMIT)
}

fn send(node: &Node, query: &str, count: u64) -> Burst {
    let began = Instant::now();
    let tally = Load::closed(vec![node.address()], 1).body(|_| query.to_owned()).send(count);
    tally.assert_none_failed();
    assert_eq!(tally.degraded(), 0);
    Burst { admitted: tally.admitted() as u64, took: began.elapsed() }
}

/// Waits until each query is allowed. Returns the time each was refused.
fn wait_all_allowed(node: &Node, queries: &[String; 4]) -> [Duration; 4] {
    let began = Instant::now();
    let mut waited = [None; 4];
    eventually("all queries are allowed again", || {
        for (waited, query) in waited.iter_mut().zip(queries) {
            if waited.is_none() && node.post("/check", query).is_allowed() {
                *waited = Some(began.elapsed());
            }
        }
        waited.iter().all(Option::is_some)
    });
    waited.map(Option::unwrap_or_default)
}

/// Checks the bounds. A step ahead admits one burst and the refill of the time taken; a step back refuses for one
/// refill, the second for which a node caches a refusal, and some slack.
fn check_bounds(stage: &Stage, algorithm: &str, extra: Burst, denied: Duration) {
    // The estimate of this algorithm covers two windows.
    let refills = if algorithm == "sliding_counter" { 2 } else { 1 };
    // A window may end while requests are sent.
    let bursts = 2 + extra.took.as_secs() / REFILL.as_secs();
    assert!(extra.admitted <= bursts * LIMIT, "{algorithm}: {extra:?} after a step ahead");
    let refilled = extra.took.as_secs() * LIMIT / REFILL.as_secs() + LIMIT / 2;
    let is_within = extra.admitted <= LIMIT + refilled;
    stage.check_time(is_within, || format!("{algorithm}: {extra:?} after a step ahead"));
    let max = REFILL * refills + Duration::from_secs(2);
    let is_within = denied <= max;
    stage
        .check_time(is_within, || format!("{algorithm}: refused for {denied:?} after a step back"));
}
