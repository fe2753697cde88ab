//! Clients that take their time, and those who ask beside them.

use std::time::{Duration, Instant};

use tollgate_testkit::wait::{eventually, pause};

use super::common::SLACK;
use crate::client::{JSON, head, key};
use crate::load::Load;
use crate::node::Node;
use crate::slow_client::{Kind, SlowClient, run};
use crate::stage::Stage;
use crate::table::format_time;
use crate::tally::Tally;
use crate::waiting::{wait_for, wait_until};

/// What a busy machine may add to the patience of a node, and to that of who counts it.
const LATE: Duration = Duration::from_secs(5);

/// What they ask for before they stop reading is a load like any other: it is over after this time.
const SETTLED: Duration = Duration::from_secs(2);

/// How long all of them are then there: the first are not closed sooner.
const TOGETHER: Duration = Duration::from_secs(5);

const PER_SECOND: u32 = 200;

pub(super) fn slow_clients_are_closed_and_delay_no_other(stage: &Stage) -> String {
    let policy = "version: 1\ndefaults: { limit: 1000000000/h, algorithm: fixed_window }\n";
    let node = stage.node().policy(policy).start();
    let before = node.files();
    let load = Load::open(vec![node.address()], PER_SECOND);
    let alone = load.during(|| wait_for(TOGETHER));
    let (mut slow, mut opened, mut pieces) = (Vec::new(), Instant::now(), Duration::ZERO);
    let tally = load.during(|| {
        slow = open_all(&node, stage.scale().pick(100, 1000));
        opened = Instant::now();
        wait_until(opened + SETTLED);
        pieces = ask_in_pieces(&node);
        run(&mut slow, Kind::Body.timeout() + LATE);
    });
    tally.assert_answered();
    let settled = opened + SETTLED;
    let beside = tally.between(settled, settled + TOGETHER);
    assert_as_quick(&alone, &beside, 500, Duration::from_millis(20));
    assert_as_quick(&alone, &beside, 990, SLACK);
    let [alone, beside] = [alone, beside].map(|tally| tally.per_mille(990));
    assert!(pieces < LATE, "a body that came after its head was answered after {pieces:?}");
    let reply = [Kind::Head, Kind::Body, Kind::Response]
        .map(|kind| format_time(assert_closed(&slow, kind)));
    drop(slow);
    eventually("all is given back", || node.files() == before);
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!(
        "heads closed after {}, bodies {}, answers that nobody reads {}; beside them {} answers, p99 {} ({} \
         without, {:.2} times), a body after its head {}",
        reply[0],
        reply[1],
        reply[2],
        tally.count(),
        format_time(beside),
        format_time(alone),
        beside.as_secs_f64() / alone.as_secs_f64(),
        format_time(pieces)
    )
}

/// One fifth more is what is claimed; a machine that others use adds to both, and not to both alike.
fn assert_as_quick(alone: &Tally, beside: &Tally, per_mille: usize, slack: Duration) {
    let [alone, beside] = [alone, beside].map(|tally| tally.per_mille(per_mille));
    let bound = alone.mul_f64(1.2) + slack;
    assert!(beside <= bound, "{per_mille} of 1000: {beside:?} beside slow ones, {alone:?} without");
}

/// So many of all kinds together.
fn open_all(node: &Node, count: usize) -> Vec<SlowClient> {
    let mut all = SlowClient::open(node, Kind::Head, count * 2 / 5);
    all.extend(SlowClient::open(node, Kind::Body, count * 2 / 5));
    all.extend(SlowClient::open(node, Kind::Response, count / 5));
    all
}

/// Many clients send their head first and their body after it: they are as quick as they can be.
fn ask_in_pieces(node: &Node) -> Duration {
    let (mut client, body) = (node.client(), key("pieces"));
    let length = format!("content-length: {}\r\n", body.len());
    client.write(head("/check", &[JSON, &length]).as_bytes()).expect("the node reads");
    pause();
    let sent = Instant::now();
    client.write(body.as_bytes()).expect("the node reads");
    let reply = client.receive().expect("the node responds");
    assert_eq!(reply.status, 200, "{}", reply.body);
    sent.elapsed()
}

/// Asserts that all of a kind were closed in time; how long they were borne with.
fn assert_closed(slow: &[SlowClient], kind: Kind) -> Duration {
    let mut longest = Duration::ZERO;
    for slow in slow.iter().filter(|slow| slow.kind() == kind) {
        let borne =
            slow.closed_after().unwrap_or_else(|| panic!("{kind:?}: one is still being served"));
        assert!(borne < kind.timeout() + LATE, "{kind:?}: borne with for {borne:?}");
        let is_told = kind != Kind::Body || slow.received().starts_with("HTTP/1.1 408");
        assert!(is_told, "a body that does not come is 408: {}", slow.received());
        longest = longest.max(borne);
    }
    longest
}
