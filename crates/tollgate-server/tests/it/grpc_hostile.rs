//! Hostile input over gRPC: an error or a closed connection, bounded memory, and other clients are served.

use std::collections::HashSet;
use std::net::SocketAddr;

use tollgate_testkit::http2::{
    Answer, CONTINUATION, DATA, END_HEADERS, HEADERS, PING, PRIORITY, RST_STREAM, RawConnection,
    SETTINGS, WINDOW_UPDATE, block, call_headers, data, flood, frame, hello, open_stream,
    reset_calls,
};
use tollgate_testkit::process_stats;

use crate::grpc_client::{GRPC, GrpcClient, OK, grpc_address};
use crate::grpc_hostile_calls::{self, Call, Expected};
use crate::grpc_hostile_frames::{self, Refused};
use crate::service::{Service, WITHOUT_HUGE_PAGES, eventually};

/// Maximum growth of the resident memory in bytes.
const MAX_GROWTH: u64 = 8 << 20;

/// A service under attack, with the connection of another client.
struct Target {
    service: Service,
    other: GrpcClient,
    address: SocketAddr,
    memory: u64,
}

impl Target {
    fn new() -> Self {
        let service = Service::start_with(&GRPC, &[WITHOUT_HUGE_PAGES]);
        let address = grpc_address(&service);
        let other = GrpcClient::connect(address);
        assert_eq!(other.status("other", &[("user", "u")]).code, OK);
        let memory = process_stats::rss(service.id());
        Self { service, other, address, memory }
    }

    /// Asserts that the other client is served on its old connection.
    fn assert_serves(&self, after: &str) {
        assert_eq!(self.other.status("other", &[("user", "u")]).code, OK, "after {after}");
    }

    fn end(self) {
        let grown = process_stats::rss(self.service.id()).saturating_sub(self.memory);
        println!("{grown} bytes more");
        assert!(grown < MAX_GROWTH, "{grown} bytes more");
        let (status, log) = self.service.stop();
        assert!(status.success() && !log.contains("panicked"), "{log}");
    }
}

/// Sends a call on a new connection.
fn answer(address: SocketAddr, call: &Call) -> Answer {
    let mut connection = RawConnection::connect(address);
    let block = block(&call.headers);
    let mut head = hello();
    let mut parts = block.chunks(16_000);
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&[u8]> = parts.collect();
    head.extend(frame(HEADERS, if rest.is_empty() { END_HEADERS } else { 0 }, 1, first));
    for (number, part) in rest.iter().enumerate() {
        let flags = if number + 1 == rest.len() { END_HEADERS } else { 0 };
        head.extend(frame(CONTINUATION, flags, 1, part));
    }
    head.extend(data(&call.body));
    connection.send(&head);
    connection.answer()
}

#[test]
fn hostile_calls_get_an_error() {
    let target = Target::new();
    let (mut inputs, mut names) = (0, HashSet::new());
    for (name, expected, calls) in grpc_hostile_calls::kinds() {
        assert!(names.insert(name), "{name} occurs twice");
        for (number, call) in calls.iter().enumerate() {
            let answer = answer(target.address, call);
            let is_allowed = expected == Expected::Anything && answer != Answer::default();
            assert!(answer.is_refusal() || is_allowed, "{name} {number}: {answer:?}");
            inputs += 1;
        }
        target.assert_serves(name);
    }
    println!("{inputs} calls of {} kinds", names.len());
    assert!(inputs >= 300 && names.len() >= 45, "{inputs} inputs of {} kinds", names.len());
    target.end();
}

#[test]
fn hostile_frames_end_the_connection() {
    let target = Target::new();
    let (mut inputs, mut names) = (0, HashSet::new());
    for (refused, (name, bytes)) in grpc_hostile_frames::kinds() {
        assert!(names.insert(name), "{name} occurs twice");
        for (number, bytes) in bytes.iter().enumerate() {
            let mut connection = RawConnection::connect(target.address);
            connection.send(bytes);
            let is_refused = match refused {
                Refused::AtOnce => connection.is_refused(),
                Refused::AtEnd => {
                    connection.finish();
                    connection.read_to_end().is_closed
                }
            };
            assert!(is_refused, "{name} {number}");
            inputs += 1;
        }
        target.assert_serves(name);
    }
    println!("{inputs} inputs of {} kinds", names.len());
    assert!(inputs >= 300 && names.len() >= 50, "{inputs} inputs of {} kinds", names.len());
    target.end();
}

#[test]
fn floods_close_the_connection() {
    let target = Target::new();
    // Headers that never end.
    let part = frame(CONTINUATION, 0, 1, &block(&[("x-part", "y")]));
    let begin = frame(HEADERS, 0, 1, &block(&call_headers()));
    for part in [part, frame(CONTINUATION, 0, 1, &[])] {
        assert!(flood(target.address, &begin, |_| part.repeat(500), 2000));
        target.assert_serves("a flood of continuation frames");
    }
    // Requests that are reset at once, many in each write.
    let reset = |number: u32| reset_calls(100 * number..100 * (number + 1));
    assert!(flood(target.address, &[], reset, 1000));
    target.assert_serves("rapid reset");
    for (name, bytes) in [
        ("pings", frame(PING, 0, 0, &[7; 8]).repeat(200)),
        ("settings", frame(SETTINGS, 0, 0, &[]).repeat(200)),
        ("priorities", frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 9]).repeat(200)),
        ("window updates", frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()).repeat(200)),
        ("empty data", frame(DATA, 0, 1, &[]).repeat(200)),
        ("unknown frames", frame(200, 255, 9, &[1; 100]).repeat(50)),
    ] {
        let mut connection = RawConnection::connect(target.address);
        connection.send(&[hello(), open_stream(0, 0), bytes.repeat(50)].concat());
        connection.finish();
        let answer = connection.read_to_end();
        assert!(answer.is_closed, "{name}: {answer:?}");
        target.assert_serves(name);
    }
    target.end();
}

/// Opens streams and resets each one only after the server has seen it, so that no cap on pending resets applies.
#[test]
fn paced_rapid_reset_closes_the_connection() {
    let target = Target::new();
    let mut connection = RawConnection::connect(target.address);
    connection.send(&hello());
    let mut resets = 0;
    eventually("the connection is closed", || {
        let is_open = connection.send(&open_stream(resets, 0)) && connection.ping();
        connection.send(&frame(RST_STREAM, 0, 2 * resets + 1, &8_u32.to_be_bytes()));
        resets += u32::from(is_open);
        !is_open
    });
    assert!(resets > 100, "closed after {resets} resets");
    target.assert_serves("paced resets");
    target.end();
}

#[test]
fn streams_beyond_the_maximum_are_refused() {
    let target = Target::new();
    let mut connection = RawConnection::connect(target.address);
    connection.send(&hello());
    for number in 0..101 {
        assert!(connection.send(&open_stream(number, 0)));
    }
    let answer = connection.answer();
    assert!(answer.is_reset || answer.has_goaway || answer.is_closed, "{answer:?}");
    target.assert_serves("101 streams");
    drop(connection);
    target.end();
}

/// A client that neither finishes its request nor closes the connection is disconnected.
#[test]
fn unfinished_requests_time_out() {
    let target = Target::new();
    let incomplete = [
        hello(),
        [hello(), frame(HEADERS, 0, 1, &block(&call_headers()))].concat(),
        [hello(), open_stream(0, 0)].concat(),
        [hello(), open_stream(0, 0), frame(DATA, 0, 1, &[0, 0, 0, 0, 9, 1])].concat(),
    ];
    let mut connections: Vec<RawConnection> = incomplete
        .iter()
        .map(|bytes| {
            let mut connection = RawConnection::connect(target.address);
            assert!(connection.send(bytes));
            connection
        })
        .collect();
    for (number, connection) in connections.iter_mut().enumerate() {
        let answer = connection.answer();
        assert!(answer.is_refusal(), "{number}: {answer:?}");
    }
    target.assert_serves("unfinished requests");
    target.end();
}
