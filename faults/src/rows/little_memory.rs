//! A node with the documented memory, and clients that make it use as much as they can.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tollgate_testkit::wait::eventually;

use crate::canary::CHECK_TOKEN;
use crate::client::{JSON, begin, head};
use crate::flood::{Flood, Replies};
use crate::front_end::{FrontEnd, Query};
use crate::held_calls::{CALLS, HeldCalls, UnfinishedCall};
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

/// The divisor of the memory that the node must have used, or nothing is proven: at least a quarter.
const MIN_USED: u64 = 4;

/// The time after which a node ends a call whose message has not arrived.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which a node closes an HTTP/2 connection whose client answers no PING: it waits 20 seconds for a request,
/// and then 20 seconds for the answer.
const KEEP_ALIVE: Duration = Duration::from_secs(40);

/// The text of the HTTP response to a request that was dropped because others needed its memory.
const DROPPED: &str = "the request body arrived more slowly than others";

/// The maximum time of one write of a hostile client over HTTP or RESP. A node that reads no more makes it wait.
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
    for call in long_heads() {
        assert_calls_are_small(&node, &call, count);
    }
    let hold = Duration::from_secs(stage.scale().pick(2, 5));
    let (phases, others) = side_load::during(
        &node,
        |_| Query::of("early"),
        || {
            flood_keys(&node, max_keys);
            phases().map(|phase| run_phase(stage, &node, &phase, count, hold))
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
        "{} keys at most, {} MiB ({}): keys, then {}; peak {} MiB, not killed; {untracked} keys untracked, {dropped} bodies dropped, no gRPC \
         connection closed; meanwhile all others answered ({})",
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

/// The number of gRPC calls that have begun.
fn calls_begun(node: &Node) -> f64 {
    node.metric("tollgate_requests_total{frontend=\"grpc\"}")
}

/// Waits until all calls of `count` connections have begun, besides the `before` that began earlier.
fn wait_until_begun(node: &Node, before: f64, count: u64) {
    let calls = u32::try_from(count).expect("a small number") * CALLS;
    eventually("the node has begun all calls", || calls_begun(node) >= before + f64::from(calls));
}

/// Asserts that calls that wait for their message keep no more of their heads than documented.
fn assert_calls_are_small(node: &Node, calls: &HostileCalls, count: u64) {
    let (before, files, begun) = (node.rss(), node.files(), calls_begun(node));
    let mut held = open_calls(node, calls, count);
    wait_until_begun(node, begun, count);
    let each = node.rss().saturating_sub(before) / count;
    let name = calls.name;
    assert!(each < PER_GRPC_CONNECTION, "{each} bytes for each connection with {name}");
    assert_held(calls, &mut held);
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

/// The bytes that each HTTP or RESP connection of one kind sends. Some of them may remain unsent, and nothing is read.
struct Hostile {
    name: &'static str,
    front_end: FrontEnd,
    bytes: Vec<u8>,
}

/// The calls that each gRPC connection of one kind begins.
struct HostileCalls {
    name: &'static str,
    call: UnfinishedCall,
}

/// The connections that are open at the same time: one kind for each listener.
struct Kinds {
    http: Hostile,
    resp: Hostile,
    grpc: HostileCalls,
}

/// Calls with the longest heads: one header that the node does not need, and headers that it needs later.
fn long_heads() -> [HostileCalls; 2] {
    let calls = |name, headers| HostileCalls {
        name,
        call: UnfinishedCall { headers, ..UnfinishedCall::default() },
    };
    [
        calls("calls with a long header", vec![("x-long", vec![b'y'; 14 << 10])]),
        calls("calls with long tracestates", vec![("tracestate", vec![b'y'; 2000]); 7]),
    ]
}

/// Calls with the begin of a long message. The bodies of all calls together are a little shorter than the window of a connection,
/// and each is long enough that the node reserves memory for its message.
fn incomplete_messages() -> HostileCalls {
    let body = [&[0, 0, 0, 0xf0, 0][..], &[0; 1300]].concat();
    HostileCalls {
        name: "incomplete messages",
        call: UnfinishedCall { body, ..UnfinishedCall::default() },
    }
}

/// The phases of the row.
fn phases() -> [Kinds; 4] {
    let http = |name, text: String| Hostile { name, front_end: FrontEnd::Http, bytes: text.into() };
    let resp = |name, text: &str| {
        let bytes = format!("AUTH {CHECK_TOKEN}\r\n{text}").into();
        Hostile { name, front_end: FrontEnd::Resp, bytes }
    };
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
    let [long_header, long_tracestates] = long_heads();
    [
        Kinds {
            http: http(INCOMPLETE_BODIES, body),
            resp: resp("incomplete commands", &command),
            grpc: incomplete_messages(),
        },
        Kinds {
            http: http("unread batches", batch.repeat(4)),
            resp: resp("unread replies", &replies),
            grpc: long_header,
        },
        Kinds {
            http: http("unread responses", responses),
            resp: resp("incomplete commands", &command),
            grpc: incomplete_messages(),
        },
        Kinds {
            http: http("incomplete heads", heads),
            resp: resp("unread replies", &replies),
            grpc: long_tracestates,
        },
    ]
}

/// The kind of HTTP connections whose bodies need more memory than there is for incomplete requests.
const INCOMPLETE_BODIES: &str = "incomplete bodies";

/// The results of a phase.
struct Phase {
    description: String,
    /// The number of incomplete bodies that the node dropped because it needed their memory.
    dropped: usize,
}

/// Opens `count` connections to each listener, and keeps them for a time.
fn run_phase(stage: &Stage, node: &Node, kinds: &Kinds, count: u64, hold: Duration) -> Phase {
    let (files, begun) = (node.files(), calls_begun(node));
    let (http, resp) = thread::scope(|scope| {
        let [http, resp] = [&kinds.http, &kinds.resp]
            .map(|hostile| scope.spawn(move || open(node, hostile, count)));
        let join = |held: thread::ScopedJoinHandle<'_, _>| held.join().expect("opening succeeds");
        (join(http), join(resp))
    });
    // Last, because calls time out soonest.
    let mut grpc = open_calls(node, &kinds.grpc, count);
    wait_until_begun(node, begun, count);
    wait_for(hold);
    let dropped = || http.iter().filter(|stream| is_dropped(stream)).count();
    if kinds.http.name == INCOMPLETE_BODIES {
        eventually("the node drops an incomplete body", || dropped() > 0);
    }
    let (rss, dropped) = (node.rss(), dropped());
    let ended = assert_held(&kinds.grpc, &mut grpc);
    // The calls need four times the memory that there is for incomplete requests.
    let has_dropped = ended > 0 || kinds.grpc.call.body.is_empty();
    stage.check_time(has_dropped, || "no call was dropped while others waited".to_owned());
    drop((http, resp, grpc));
    eventually("all connections are closed", || node.files() <= files);
    let [http, resp, grpc] = [kinds.http.name, kinds.resp.name, kinds.grpc.name];
    let all = count * u64::from(CALLS);
    let description = format!(
        "{count} connections each with {http}, {resp}, {grpc} ({ended} of {all} calls ended): {} MiB",
        rss >> 20
    );
    Phase { description, dropped }
}

/// Opens HTTP or RESP connections that send bytes and read nothing.
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

/// Opens gRPC connections and begins as many calls on each as possible.
fn open_calls(node: &Node, calls: &HostileCalls, count: u64) -> Vec<HeldCalls> {
    let address = node.grpc_address();
    let open = |_| HeldCalls::open(address, &calls.call);
    let held: Result<Vec<HeldCalls>, _> = (0..count).map(open).collect();
    held.unwrap_or_else(|error| panic!("{}: {error}", calls.name))
}

/// Asserts that the node has read all calls, and has closed no connection. Only calls with a part of a message may have ended:
/// they need memory that others wait for. Returns the number of those.
fn assert_held(calls: &HostileCalls, held: &mut [HeldCalls]) -> u32 {
    let mut ended = 0;
    for connection in held {
        match connection.count_ended() {
            Ok(count) => {
                let may_end = !calls.call.body.is_empty() || connection.age() >= CALL_TIMEOUT;
                assert!(count == 0 || may_end, "{}: {count} calls ended early", calls.name);
                ended += count;
            }
            Err(error) => {
                let age = connection.age();
                assert!(age >= KEEP_ALIVE, "{} after {age:?}: {error}", calls.name);
            }
        }
    }
    ended
}

/// Returns whether the node has dropped the incomplete body of a connection because others needed its memory.
fn is_dropped(stream: &TcpStream) -> bool {
    let mut bytes = [0; 2048];
    stream.set_nonblocking(true).expect("a socket may be non-blocking");
    let Ok(length) = stream.peek(&mut bytes) else { return false };
    let response = String::from_utf8_lossy(&bytes[..length]);
    response.starts_with("HTTP/1.1 408") && response.contains(DROPPED)
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
