//! Wall clocks that step: ours, which must not matter, and that of Redis, which decides.

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

/// Half of what the refill of one hour gives back is not there for a long while yet.
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
        for algorithm in ALGORITHMS {
            for (number, shift) in (0..).zip(steps()) {
                clock.set(shift);
                let ask = |node: &Node, who: &str| {
                    let client = format!("{who}-{algorithm}");
                    decided(node, &inline(&client, 1 + number % 2, algorithm, LIMIT))
                };
                let [wrong, right] = [ask(&stepping, "wrong"), ask(&control, "right")];
                assert_eq!(wrong, right, "{kind}, {algorithm}, step {number}: {shift:?}");
                decisions += 1;
            }
        }
        clock.set(Shift::None);
    }
    format!("{decisions} decisions on memory and Redis while our clock stepped: each as without")
}

/// Steps of a clock, and back.
fn steps() -> Vec<Shift> {
    let (ahead, behind) = (Shift::Ahead(HOUR), Shift::Behind(HOUR));
    [ahead, Shift::None, behind, ahead, behind, Shift::None].repeat(2)
}

/// What a node decides, without what moves by itself.
fn decided(node: &Node, question: &str) -> (bool, u64, u64, bool) {
    let reply = node.post("/check", question);
    assert!(reply.is_exact(), "{}", reply.body);
    let json = reply.json();
    let number = |field: &str| json[field].as_u64().expect("a number");
    (reply.is_allowed(), number("count"), number("remaining"), json["retry_after_ms"].is_null())
}

/// A refill of which a test can wait for the end.
const REFILL: Duration = Duration::from_secs(2);

pub(super) fn clock_step_of_redis_costs_at_most_one_refill(stage: &Stage) -> String {
    let clock = Clock::new();
    let server = redis::builder().clock(&clock).start();
    let node = stage.node().redis(&redis::url(&server)).patient().start();
    let questions = ALGORITHMS.map(|name| inline_within(name, 1, (name, LIMIT, REFILL)));
    // Nobody is refused yet: a node that remembers a refusal would not ask.
    for (algorithm, question) in ALGORITHMS.iter().zip(&questions) {
        assert_eq!(ask(&node, question, LIMIT).admitted, LIMIT, "{algorithm}");
    }
    step(&clock, &server, Shift::Ahead(HOUR));
    let extra = questions.each_ref().map(|question| use_up(&node, question));
    step(&clock, &server, Shift::None);
    let first = wait_all_allowed(&node, &questions);
    // From right to an hour behind, too.
    for question in &questions {
        use_up(&node, question);
    }
    step(&clock, &server, Shift::Behind(HOUR));
    let second = wait_all_allowed(&node, &questions);
    let mut seen = Vec::new();
    for (nth, algorithm) in ALGORITHMS.into_iter().enumerate() {
        let (extra, denied) = (extra[nth], first[nth].max(second[nth]));
        assert_bounded(algorithm, extra, denied);
        seen.push(format!("{algorithm} {} extra, {} denied", extra.admitted, format_time(denied)));
    }
    format!("bursts of {LIMIT}, full again in {REFILL:?}: {}", seen.join("; "))
}

/// Sets the clock of a server, and waits until it has looked.
fn step(clock: &Clock, server: &Server, shift: Shift) {
    clock.set(shift);
    let now = SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970");
    let expected = match shift {
        Shift::None => now,
        Shift::Ahead(by) => now + by,
        Shift::Behind(by) => now - by,
    };
    eventually("the clock is looked at", || {
        let reply = server.raw().call(&["TIME"]).array()[0].text().parse::<u64>();
        reply.is_ok_and(|reply| reply.abs_diff(expected.as_secs()) < HOUR.as_secs() / 2)
    });
}

/// What passed until somebody was refused, and how long that took.
#[derive(Debug, Clone, Copy)]
struct Burst {
    admitted: u64,
    took: Duration,
}

fn use_up(node: &Node, question: &str) -> Burst {
    ask(node, question, 3 * LIMIT)
}

fn ask(node: &Node, question: &str, count: u64) -> Burst {
    let began = Instant::now();
    let tally = Load::closed(vec![node.address()], 1).body(|_| question.to_owned()).send(count);
    tally.assert_answered();
    assert_eq!(tally.degraded(), 0);
    Burst { admitted: tally.admitted() as u64, took: began.elapsed() }
}

/// How long each was refused.
fn wait_all_allowed(node: &Node, questions: &[String; 4]) -> [Duration; 4] {
    let began = Instant::now();
    let mut waited = [None; 4];
    eventually("all pass again", || {
        for (waited, question) in waited.iter_mut().zip(questions) {
            if waited.is_none() && node.post("/check", question).is_allowed() {
                *waited = Some(began.elapsed());
            }
        }
        waited.iter().all(Option::is_some)
    });
    waited.map(Option::unwrap_or_default)
}

/// One burst, and what comes back by itself meanwhile; then one refill, and the second for which a node
/// remembers a refusal, and what a slow machine adds.
fn assert_bounded(algorithm: &str, extra: Burst, denied: Duration) {
    // The windows of a counter reach over two.
    let refills = if algorithm == "sliding_counter" { 2 } else { 1 };
    let meanwhile = extra.took.as_secs() * LIMIT / REFILL.as_secs() + LIMIT / 2;
    assert!(extra.admitted <= LIMIT + meanwhile, "{algorithm}: {extra:?} by a step ahead");
    let most = REFILL * refills + Duration::from_secs(2);
    assert!(denied <= most, "{algorithm}: nobody passed for {denied:?} after a step back");
}
