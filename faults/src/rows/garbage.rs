//! Answers that no Redis gives.

use std::time::Duration;

use tollgate_testkit::proxy::{Fault, Proxy};
use tollgate_testkit::random::Random;

use super::common::{SLACK, T, assert_exact};
use crate::load::Load;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;
use crate::table::format_time;
use crate::waiting::wait_for;

/// How much memory a node may gain by all of it.
const GROWTH: u64 = 64 << 20;

fn nonsense() -> Vec<(&'static str, Vec<u8>)> {
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
        ("more than is asked for", b"+OK\r\n+OK\r\n+OK\r\n".to_vec()),
        ("a text for numbers", b"$5\r\nhello\r\n".to_vec()),
        ("an array of a billion", b"*1000000000\r\n:1\r\n".to_vec()),
        ("a length below zero", b"$-77\r\n".to_vec()),
        ("a length beyond numbers", b"$99999999999999999999\r\n".to_vec()),
        ("arrays in arrays", b"*1\r\n".repeat(100_000)),
        ("a line without end", vec![b'+'; 2 << 20]),
        ("two megabytes", huge(2 << 20)),
        ("nothing but zeroes", vec![0; 4096]),
        ("numbers that are none", b"*3\r\n:9999999999999999999999\r\n:x\r\n:-0\r\n".to_vec()),
    ]
}

pub(super) fn corrupt_replies_are_refused_without_harm(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    let setup =
        stage.node().redis(&redis::through(&proxy)).policy(&per_client("1000000/h", Loss::Local));
    // Kinds are many, and after each it is waited for.
    let node = setup.with("probe-ms", "100").start();
    node.wait_exact();
    let (before, kinds) = (node.rss(), nonsense());
    let length = Duration::from_millis(stage.scale().pick(300, 3000));
    let (mut slowest, mut count) = (Duration::ZERO, 0);
    for (kind, bytes) in &kinds {
        let connected = proxy.connections();
        proxy.set(Fault::Answer(bytes.clone()));
        let tally = Load::open(vec![node.address()], 50).during(|| wait_for(length));
        proxy.set(Fault::Pass);
        // What was made of nonsense must not be answered by what comes after it.
        proxy.cut_all();
        node.wait_exact();
        tally.assert_answered();
        assert!(tally.degraded() > 0, "{kind}: nobody noticed");
        assert!(proxy.connections() > connected, "{kind}: the connection was kept");
        (slowest, count) = (slowest.max(tally.slowest()), count + tally.count());
    }
    assert!(slowest < T + SLACK, "the slowest answer took {slowest:?}");
    let grown = node.rss().saturating_sub(before);
    assert!(grown < GROWTH, "{grown} bytes more");
    assert!(!node.log().contains("panicked"), "{}", node.log());
    assert_exact(&[node.address()]);
    format!(
        "{} kinds, {count} answers, no 5xx, slowest {}, {} KiB more, no panic; exact after each",
        kinds.len(),
        format_time(slowest),
        grown / 1024
    )
}
