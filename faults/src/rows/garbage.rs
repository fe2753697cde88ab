//! Corrupt and huge replies.

use std::time::Duration;

use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::random::Random;

use super::common::{T, assert_exact, check_others, check_slowest};
use crate::front_end::Query;
use crate::load::Load;
use crate::policy::{Loss, per_client_everywhere};
use crate::redis;
use crate::side_load;
use crate::stage::Stage;
use crate::table::format_time;
use crate::waiting::wait_for;

/// The maximum memory growth of a node, in bytes.
const MAX_GROWTH: u64 = 64 << 20;

/// Invalid replies, by name.
fn corrupt_replies() -> Vec<(&'static str, Vec<u8>)> {
    let mut random = Random::new(19);
    let noise = std::iter::repeat_with(|| random.draw().to_le_bytes()).take(512).flatten();
    let huge = |length: usize| {
        let mut bytes = format!("${length}\r\n").into_bytes();
        bytes.resize(bytes.len() + length, b'x');
        bytes.extend_from_slice(b"\r\n");
        bytes
    };
    vec![
        ("noise", noise.collect()),
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        ("more replies than requests", b"+OK\r\n+OK\r\n+OK\r\n".to_vec()),
        ("a text instead of numbers", b"$5\r\nhello\r\n".to_vec()),
        ("an array of a billion items", b"*1000000000\r\n:1\r\n".to_vec()),
        ("a length below zero", b"$-77\r\n".to_vec()),
        ("a length above 2^64", b"$99999999999999999999\r\n".to_vec()),
        ("deeply nested arrays", b"*1\r\n".repeat(100_000)),
        ("an endless line", vec![b'+'; 2 << 20]),
        ("two megabytes", huge(2 << 20)),
        ("zero bytes", vec![0; 4096]),
        ("invalid numbers", b"*3\r\n:9999999999999999999999\r\n:x\r\n:-0\r\n".to_vec()),
    ]
}

pub(super) fn corrupt_replies_are_refused_without_harm(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    let setup = stage
        .node()
        .all_front_ends()
        .redis(&redis::through(&proxy))
        .policy(&per_client_everywhere("1000000/h", Loss::Local));
    // A short probe interval: the row waits for recovery after each kind.
    let node = setup.with("probe-ms", "100").start();
    node.wait_exact();
    let (before, kinds) = (node.rss(), corrupt_replies());
    let duration = Duration::from_millis(stage.scale().pick(300, 3000));
    let (mut slowest, mut count, mut count_others) = (Duration::ZERO, 0, 0);
    for (kind, bytes) in &kinds {
        let connected = proxy.connections();
        proxy.set(Fault::Answer(bytes.clone()));
        let (tally, others) = side_load::during(
            &node,
            |_| Query::of("side"),
            || Load::open(vec![node.address()], 50).during(|| wait_for(duration)),
        );
        check_others(stage, &others, T);
        count_others += others.iter().map(|(_, tally)| tally.count()).sum::<usize>();
        proxy.set(Fault::Pass);
        // A valid reply must not follow a corrupt one on the same connection.
        proxy.cut_all();
        node.wait_exact();
        tally.assert_answered(stage);
        assert!(tally.degraded() > 0, "{kind}: no decision is degraded");
        assert!(proxy.connections() > connected, "{kind}: the connection was kept");
        (slowest, count) = (slowest.max(tally.slowest()), count + tally.count());
    }
    check_slowest(stage, slowest, T);
    let growth = node.rss().saturating_sub(before);
    assert!(growth < MAX_GROWTH, "memory grew by {growth} bytes");
    assert!(!node.log().contains("panicked"), "{}", node.log());
    assert_exact(stage, &[node.address()]);
    format!(
        "{} kinds, {count} answers over HTTP and {count_others} over RESP, gRPC and /auth, no 5xx, slowest {}, memory growth {} KiB, no panic; exact after each",
        kinds.len(),
        format_time(slowest),
        growth / 1024
    )
}
