//! Slow clients, and normal clients at the same time.

use std::time::{Duration, Instant};

use tollgate_testkit::wait::{eventually, pause};

use super::common::{SLACK, check_as_fast};
use crate::client::{JSON, head, key};
use crate::load::Load;
use crate::node::Node;
use crate::slow_client::{Kind, SlowClient, run};
use crate::stage::Stage;
use crate::table::format_time;
use crate::waiting::{wait_for, wait_until};

/// The slack of a busy machine for a node's time-outs and their measurement.
const TIMEOUT_SLACK: Duration = Duration::from_secs(5);

/// The time until the requests of clients that read nothing are processed; until then they are normal load.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// The measured time with all slow clients connected: the node closes none of them earlier.
const MEASURED_TIME: Duration = Duration::from_secs(5);

const PER_SECOND: u32 = 200;

pub(super) fn slow_clients_are_closed_and_delay_no_other(stage: &Stage) -> String {
    let policy = "version: 1\ndefaults: { limit: 1000000000/h, algorithm: fixed_window }\n";
    let node = stage.node().all_front_ends().policy(policy).start();
    let before = node.files();
    let load = Load::open(vec![node.address()], PER_SECOND);
    let alone = load.during(|| wait_for(MEASURED_TIME));
    let (mut slow, mut opened, mut split) = (Vec::new(), Instant::now(), Duration::ZERO);
    let tally = load.during(|| {
        slow = open_all(&node, stage.scale().pick(100, 1000));
        opened = Instant::now();
        wait_until(opened + SETTLE_TIME);
        split = send_split(&node);
        run(&mut slow, Kind::Body.timeout() + TIMEOUT_SLACK);
    });
    tally.assert_answered(stage);
    let settled = opened + SETTLE_TIME;
    let loaded = tally.between(settled, settled + MEASURED_TIME);
    check_as_fast(stage, [&alone, &loaded], 500, Duration::from_millis(20));
    check_as_fast(stage, [&alone, &loaded], 990, SLACK);
    let [alone, loaded] = [alone, loaded].map(|tally| tally.per_mille(990));
    stage.check_time(split < TIMEOUT_SLACK, || {
        format!("a body sent after its headers: response after {split:?}")
    });
    let times = [Kind::Head, Kind::Body, Kind::Response, Kind::Command, Kind::Replies, Kind::Call]
        .map(|kind| format_time(assert_closed(stage, &slow, kind)));
    drop(slow);
    eventually("all descriptors are released", || node.files() == before);
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!(
        "slow headers closed after {}, bodies {}, unread responses {}, RESP commands {}, unread replies {}, gRPC calls ended \
         after {}; meanwhile {} answers, p99 {} ({} without, {:.2} \
         times), a body sent after its headers {}",
        times[0],
        times[1],
        times[2],
        times[3],
        times[4],
        times[5],
        tally.count(),
        format_time(loaded),
        format_time(alone),
        loaded.as_secs_f64() / alone.as_secs_f64(),
        format_time(split)
    )
}

/// Opens `count` slow clients of all kinds.
fn open_all(node: &Node, count: usize) -> Vec<SlowClient> {
    let mut all = SlowClient::open(node, Kind::Head, count * 2 / 5);
    all.extend(SlowClient::open(node, Kind::Body, count * 2 / 5));
    all.extend(SlowClient::open(node, Kind::Response, count / 5));
    all.extend(SlowClient::open(node, Kind::Command, count / 5));
    all.extend(SlowClient::open(node, Kind::Replies, count / 50));
    all.extend(SlowClient::open(node, Kind::Call, count / 5));
    all
}

/// Sends a body separately after its headers, as many HTTP clients do. Returns the time from the body to the response.
fn send_split(node: &Node) -> Duration {
    let (mut client, body) = (node.client(), key("split"));
    let length = format!("content-length: {}\r\n", body.len());
    client.write(head("/check", &[JSON, &length]).as_bytes()).expect("the node reads");
    pause();
    let sent = Instant::now();
    client.write(body.as_bytes()).expect("the node reads");
    let reply = client.receive().expect("the node responds");
    assert_eq!(reply.status, 200, "{}", reply.body);
    sent.elapsed()
}

/// Asserts that the node closed all clients of a kind, and checks the time. Returns the longest time.
fn assert_closed(stage: &Stage, slow: &[SlowClient], kind: Kind) -> Duration {
    let mut longest = Duration::ZERO;
    for slow in slow.iter().filter(|slow| slow.kind() == kind) {
        let open =
            slow.closed_after().unwrap_or_else(|| panic!("{kind:?}: a connection is still open"));
        let has_status = kind != Kind::Body || slow.received().starts_with("HTTP/1.1 408");
        assert!(has_status, "a body that times out is 408: {}", slow.received());
        longest = longest.max(open);
    }
    let is_within = longest < kind.timeout() + TIMEOUT_SLACK;
    stage.check_time(is_within, || format!("{kind:?}: closed after {longest:?}"));
    longest
}
