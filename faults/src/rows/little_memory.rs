//! A node with the documented memory, and clients that make it use as much as they can.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tollgate_testkit::http2::{DATA, END_HEADERS, HEADERS, block, call_headers, frame, hello};
use tollgate_testkit::wait::eventually;

use crate::canary::CHECK_TOKEN;
use crate::client::{JSON, begin, head};
use crate::flood::{Flood, Replies};
use crate::front_end::{FrontEnd, Query};
use crate::memory_cap::MemoryCap;
use crate::node::Node;
use crate::policy::{Loss, per_client_everywhere};
use crate::scale::Scale;
use crate::side_load;
use crate::stage::Stage;
use crate::waiting::wait_for;

/// The memory that docs/OPERATING.md shows for a node, in bytes: the process with all incomplete requests, a key besides its
/// text, and a connection of each front end at worst.
const PROCESS: u64 = 128 << 20;
const PER_KEY: u64 = 64;
const PER_HTTP_CONNECTION: u64 = 6 << 20;
const PER_RESP_CONNECTION: u64 = 256 << 10;
const PER_GRPC_CONNECTION: u64 = 2560 << 10;
const PER_CONNECTION: u64 = PER_HTTP_CONNECTION + PER_RESP_CONNECTION + PER_GRPC_CONNECTION;

/// The length of the longest keys, in bytes.
const LONGEST_KEY: u64 = 1024;

/// Connections of each listener that the hostile clients leave free.
const FREE_CONNECTIONS: u64 = 10;

/// The part of its memory that the node must have used, or nothing is proven: one of so many.
const MIN_USED: u64 = 4;

/// The maximum time of one write of a hostile client. A node that reads no more makes it wait.
const WRITE_TIMEOUT: Duration = Duration::from_millis(50);

/// The limit of every client.
const LIMIT: u64 = 5;

pub(super) fn node_with_the_documented_memory_survives_floods(stage: &Stage) -> String {
    let (connections, max_keys) = stage.scale().pick((50, 20_000), (200, 100_000));
    let bytes = PROCESS + max_keys * (PER_KEY + LONGEST_KEY) + connections * PER_CONNECTION;
    let cap = MemoryCap::new(bytes);
    // Where tests may not create cgroups, the short form only compares the peak.
    let is_capped = cap.is_enforced() || stage.scale() == Scale::Quick;
    assert!(
        is_capped,
        "this row needs a memory cgroup: run it as root, with a writable /sys/fs/cgroup"
    );
    let policy = per_client_everywhere("5/h", Loss::Local);
    let setup = stage.node().all_front_ends().policy(&policy).cap(&cap);
    let setup = setup.with("max-connections", connections.to_string());
    let node = setup.with("max-keys", max_keys.to_string()).start();
    exhaust(&node, "early");
    let count = connections - FREE_CONNECTIONS;
    assert_calls_are_small(&node, count);
    let hold = Duration::from_secs(stage.scale().pick(2, 5));
    let (phases, others) = side_load::during(
        &node,
        |_| Query::of("early"),
        || {
            flood_keys(&node, max_keys);
            phases().map(|phase| run_phase(&node, &phase, count, hold))
        },
    );
    assert_eq!(cap.kills(), 0, "the system killed the node: {}", node.log());
    for (front_end, tally) in &others {
        tally.assert_none_failed();
        assert_eq!(tally.admitted(), 0, "an exhausted client over {}", front_end.name());
    }
    let dropped: usize = phases.iter().map(|phase| phase.dropped).sum();
    assert!(dropped > 0, "no incomplete body was dropped, so the node did not need its memory");
    let untracked = node.metric("tollgate_memory_untracked_total");
    assert!(untracked > 0.0, "no key was above the maximum");
    let peak = node.peak();
    assert!(peak <= bytes, "the node used {peak} of {bytes} bytes");
    assert!(peak * MIN_USED > bytes, "the node used only {peak} of {bytes} bytes");
    assert_still_exact(&node);
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!(
        "{} keys at most, {} MiB ({}): keys, then {}; peak {} MiB, not killed; {untracked} keys untracked, {dropped} bodies dropped; \
         meanwhile all others answered ({})",
        max_keys,
        bytes >> 20,
        cap.kind(),
        phases.map(|phase| phase.description).join("; "),
        peak >> 20,
        side_load::counts(&others)
    )
}

/// Uses up the limit of a client. gRPC requests have their own rule.
fn exhaust(node: &Node, client: &str) {
    for front_end in [FrontEnd::Http, FrontEnd::Grpc] {
        let mut connection = node.connect(front_end);
        let mut is_allowed =
            |_: &u64| connection.check(&Query::of(client)).is_ok_and(|answer| answer.is_allowed());
        let allowed = (0..LIMIT + 2).filter(|number| is_allowed(number)).count() as u64;
        assert_eq!(allowed, LIMIT, "{client} over {}", front_end.name());
    }
}

/// Asserts that calls that wait for their message keep neither their heads nor more memory than documented.
fn assert_calls_are_small(node: &Node, count: u64) {
    let requests = || node.metric("tollgate_requests_total{frontend=\"grpc\"}");
    let (before, files, begun) = (node.rss(), node.files(), requests());
    let hostile = Hostile {
        name: "long heads of calls",
        front_end: FrontEnd::Grpc,
        bytes: calls(&[b'y'; 14 << 10], 0),
    };
    let held = open(node, &hostile, count);
    let calls = f64::from(u32::try_from(count * CALLS_EACH).expect("the count fits u32"));
    eventually("the node has begun all calls", || requests() >= begun + calls);
    let each = node.rss().saturating_sub(before) / count;
    assert!(each < PER_GRPC_CONNECTION, "{each} bytes for each connection with long heads");
    drop(held);
    eventually("all connections are closed", || node.files() <= files);
}

/// Sends twice as many keys as the node keeps, as long as possible.
fn flood_keys(node: &Node, max_keys: u64) {
    let address = node.address_of(FrontEnd::Resp);
    let flood = Flood { address, connections: 4, period: 36_000, key_bytes: LONGEST_KEY };
    let expected = Replies { allowed: 2 * max_keys, ..Replies::default() };
    assert_eq!(flood.send(0..2 * max_keys), expected, "each key is new");
}

/// What the connections of one kind send. Some of these bytes may remain unsent, and nothing is read.
struct Hostile {
    name: &'static str,
    front_end: FrontEnd,
    bytes: Vec<u8>,
}

/// The kinds of connections that are open at the same time, one for each listener.
fn phases() -> [[Hostile; 3]; 4] {
    let http = |name, text: String| Hostile { name, front_end: FrontEnd::Http, bytes: text.into() };
    let resp = |name, text: &str| {
        let bytes = format!("AUTH {CHECK_TOKEN}\r\n{text}").into();
        Hostile { name, front_end: FrontEnd::Resp, bytes }
    };
    let grpc = |name, bytes| Hostile { name, front_end: FrontEnd::Grpc, bytes };
    let length = |length: usize| format!("content-length: {length}\r\n");
    // The longest response: a thousand results with sixteen limits each.
    let limits: Vec<String> = (1..=16).map(|seconds| format!("9/{seconds}s")).collect();
    let item = json!({ "key": "k".repeat(700), "limits": limits });
    let batch = json!({ "requests": vec![item; 1000] }).to_string();
    let batch = head("/check/batch", &[JSON, &length(batch.len())]) + &batch;
    let body = head("/release", &[JSON, &length(2 << 20)]) + &" ".repeat((2 << 20) - 10);
    let heads = begin("POST", "/check") + "x: " + &"y".repeat(15 << 10);
    let responses = (begin("GET", "/openapi.json") + "\r\n").repeat(2000);
    let command = "*3\r\n$14\r\nTOLLGATE.CHECK\r\n$2\r\nab\r\n$60000\r\n".to_owned();
    let command = command + &"x".repeat(59_000);
    let replies = format!("*2\r\n$4\r\nECHO\r\n$60000\r\n{}\r\n", "x".repeat(60_000)).repeat(100);
    [
        [
            http("incomplete bodies", body),
            resp("incomplete commands", &command),
            grpc("incomplete messages", calls(&[], 48_000)),
        ],
        [
            http("unread batches", batch.repeat(4)),
            resp("unread replies", &replies),
            grpc("long heads of calls", calls(&[b'y'; 14 << 10], 0)),
        ],
        [
            http("unread responses", responses),
            resp("incomplete commands", &command),
            grpc("incomplete messages", calls(&[], 48_000)),
        ],
        [
            http("incomplete heads", heads),
            resp("unread replies", &replies),
            grpc("long heads of calls", calls(&[b'y'; 14 << 10], 0)),
        ],
    ]
}

/// The number of calls of a gRPC connection: the maximum.
const CALLS_EACH: u64 = 100;

/// As many calls on one connection as possible, with a header of this value, and this much of a longer message.
fn calls(header: &[u8], message: usize) -> Vec<u8> {
    let mut headers = call_headers();
    headers.push(("authorization".to_owned(), format!("Bearer {CHECK_TOKEN}").into()));
    headers.push(("x-long".to_owned(), header.to_vec()));
    let (head, begin) = (block(&headers), [&[0, 0, 0, 0xf0, 0][..], &vec![0; message]].concat());
    let call = |number: u64| {
        let stream = u32::try_from(2 * number + 1).expect("a small number");
        let mut bytes = frame(HEADERS, END_HEADERS, stream, &head);
        if message > 0 {
            bytes.extend(begin.chunks(16_000).flat_map(|part| frame(DATA, 0, stream, part)));
        }
        bytes
    };
    [hello(), (0..CALLS_EACH).flat_map(call).collect()].concat()
}

/// What was seen in a phase.
struct Phase {
    description: String,
    /// The number of incomplete bodies that the node dropped.
    dropped: usize,
}

/// Opens `count` connections to each listener, and keeps them for a time.
fn run_phase(node: &Node, kinds: &[Hostile; 3], count: u64, hold: Duration) -> Phase {
    let files = node.files();
    let held = thread::scope(|scope| {
        let open = |hostile| scope.spawn(move || open(node, hostile, count));
        let opening: Vec<_> = kinds.iter().map(open).collect();
        let held = opening.into_iter().map(|held| held.join().expect("opening does not panic"));
        held.collect::<Vec<_>>()
    });
    wait_for(hold);
    let rss = node.rss();
    let dropped = held.iter().flatten().filter(|stream| is_dropped(stream)).count();
    drop(held);
    eventually("all connections are closed", || node.files() <= files);
    let names = kinds.each_ref().map(|kind| kind.name).join(", ");
    let description = format!("{count} connections each with {names}: {} MiB", rss >> 20);
    Phase { description, dropped }
}

/// Opens connections that send bytes and read nothing.
fn open(node: &Node, hostile: &Hostile, count: u64) -> Vec<TcpStream> {
    let address: SocketAddr = node.address_of(hostile.front_end);
    let open = |_| {
        let mut stream = TcpStream::connect(address).expect("the system accepts connections");
        stream.set_write_timeout(Some(WRITE_TIMEOUT)).expect("the time-out is not zero");
        // Fails when the node reads no more, or closes the connection.
        let _ = stream.write_all(&hostile.bytes);
        stream
    };
    (0..count).map(open).collect()
}

/// Returns whether the node has dropped the incomplete body of a connection.
fn is_dropped(mut stream: &TcpStream) -> bool {
    let mut status = [0; 12];
    stream.set_nonblocking(true).expect("a socket may be non-blocking");
    stream.read_exact(&mut status).is_ok() && status == *b"HTTP/1.1 408"
}

/// Asserts that every front end still decides exactly.
fn assert_still_exact(node: &Node) {
    for front_end in FrontEnd::ALL {
        let name = front_end.name();
        let early = node.check_over(front_end, &Query::of("early"));
        assert!(!early.is_allowed(), "an exhausted client over {name}: {early:?}");
        let new = node.check_over(front_end, &Query::of("new"));
        assert!(new.is_allowed(), "a new client over {name}: {new:?}");
    }
}
