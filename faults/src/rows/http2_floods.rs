//! Floods over HTTP/2, and normal clients at the same time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tollgate_testkit::http2::{
    CONTINUATION, HEADERS, RST_STREAM, RawConnection, block, call_headers, data, flood, frame,
    hello, message, open_stream, reset_calls,
};
use tollgate_testkit::wait::eventually;

use super::common::{SLACK, check_as_fast};
use crate::front_end::Query;
use crate::load::Load;
use crate::side_load;
use crate::stage::Stage;
use crate::table::format_time;
use crate::waiting::wait_for;

const POLICY: &str = "
version: 1
defaults: { limit: 1000000000/h, algorithm: fixed_window }
rules:
  - { name: edge, match: { facts: { domain: edge } }, per: [descriptor], limits: [1000000000/h] }
";

/// Maximum growth of the resident memory in bytes, after floods of all kinds.
const MAX_GROWTH: u64 = 8 << 20;

const PER_SECOND: u32 = 200;

pub(super) fn http2_floods_are_closed_and_delay_no_other(stage: &Stage) -> String {
    let node = stage.node().open().all_front_ends().policy(POLICY).start();
    let grpc = node.grpc_address();
    assert_served(grpc);
    // The first floods set the size of buffers.
    flood_all(grpc);
    reset_until_closed(grpc);
    let (files, memory) = (node.files(), node.rss());
    let measured = Duration::from_secs(stage.scale().pick(1, 10));
    let load = Load::open(vec![node.address()], PER_SECOND);
    let alone = load.during(|| wait_for(measured));
    let mut floods = 0;
    let (loaded, others) = side_load::during(
        &node,
        |_| Query::of("side"),
        || {
            load.during(|| {
                let began = Instant::now();
                while began.elapsed() < measured {
                    floods += flood_all(grpc);
                }
            })
        },
    );
    loaded.assert_answered(stage);
    for (front_end, tally) in &others {
        assert_eq!(tally.admitted(), tally.count(), "{}", front_end.name());
    }
    check_as_fast(stage, [&alone, &loaded], 500, Duration::from_millis(20));
    check_as_fast(stage, [&alone, &loaded], 990, SLACK);
    eventually("all descriptors are released", || node.files() <= files);
    let grown = node.rss().saturating_sub(memory);
    assert!(grown < MAX_GROWTH, "{grown} bytes more after {floods} floods");
    assert!(!node.log().contains("panicked"), "{}", node.log());
    let [alone, loaded] = [alone, loaded].map(|tally| tally.per_mille(990));
    format!(
        "{floods} floods closed, {} KiB more memory; meanwhile p99 {} ({} without), also {}",
        grown / 1024,
        format_time(loaded),
        format_time(alone),
        side_load::counts(&others)
    )
}

/// Sends a flood of each kind, and checks that each is closed and that gRPC clients are served. Returns their number.
fn flood_all(address: SocketAddr) -> usize {
    let calls = |nth| reset_calls(100 * nth..100 * (nth + 1));
    let resets = flood(address, &[], calls, 1000);
    let begin = frame(HEADERS, 0, 1, &block(&call_headers()));
    let endless = |part: Vec<u8>| flood(address, &begin, |_| part.repeat(500), 2000);
    let filled = endless(frame(CONTINUATION, 0, 1, &block(&[("x-part", "y")])));
    let empty = endless(frame(CONTINUATION, 0, 1, &[]));
    let floods = [("resets", resets), ("header frames", filled), ("empty header frames", empty)];
    for (name, is_closed) in floods {
        assert!(is_closed, "a flood of {name} is not closed");
    }
    assert_served(address);
    floods.len()
}

/// Resets each call only after the node has seen it, until the node closes the connection.
fn reset_until_closed(address: SocketAddr) {
    let mut connection = RawConnection::connect(address);
    connection.send(&hello());
    let mut number = 0;
    eventually("the connection is closed", || {
        let is_open = connection.send(&open_stream(number, 0)) && connection.ping();
        connection.send(&frame(RST_STREAM, 0, 2 * number + 1, &8_u32.to_be_bytes()));
        number += 1;
        !is_open
    });
}

/// Asserts that a gRPC client on a new connection gets a decision.
fn assert_served(address: SocketAddr) {
    let field = |number: u8, bytes: &[u8]| {
        let length = u8::try_from(bytes.len()).expect("a short field");
        [&[number << 3 | 2, length], bytes].concat()
    };
    let entry = field(1, &[field(1, b"user"), field(2, b"u")].concat());
    let request = [field(1, b"edge"), field(2, &entry)].concat();
    let mut connection = RawConnection::connect(address);
    connection.send(&[hello(), open_stream(0, 0), data(&message(&request))].concat());
    let answer = connection.answer();
    assert!(answer.has_message && !answer.is_closed, "{answer:?}");
}
