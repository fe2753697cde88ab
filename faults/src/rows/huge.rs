//! Endless requests, and deeply nested JSON.

use crate::client::{Client, JSON, begin, head};
use crate::endpoints::{BATCH, DECIDING, assert_refused};
use crate::node::Node;
use crate::stage::Stage;

/// The bytes sent if the node never closes the connection.
const GIGABYTE: usize = 1 << 30;

/// The maximum number of bytes sent until the node closes: mostly the socket buffers of the system.
const MAX_SENT: usize = 64 << 20;

/// The approximate size of one write, in bytes.
const CHUNK_SIZE: usize = 1 << 20;

/// The number of repetitions of the largest valid requests.
const REPETITIONS: usize = 32;

/// An endless request: its name, its begin, the bytes that are repeated, and the expected statuses.
struct Endless {
    name: String,
    begin: String,
    more: Vec<u8>,
    statuses: &'static [u16],
}

impl Endless {
    fn new(name: &str, begin: String, more: &str, statuses: &'static [u16]) -> Self {
        let more = more.repeat(CHUNK_SIZE.div_ceil(more.len())).into_bytes();
        Self { name: name.to_owned(), begin, more, statuses }
    }
}

fn endless() -> Vec<Endless> {
    let declared = format!("content-length: {GIGABYTE}\r\n");
    let chunked = "transfer-encoding: chunked\r\n";
    let chunk = format!("{CHUNK_SIZE:x}\r\n{}\r\n", " ".repeat(CHUNK_SIZE));
    let mut all: Vec<Endless> = Vec::new();
    for path in DECIDING.into_iter().chain([BATCH, "/release", "/renew"]) {
        let body = |header| head(path, &[JSON, header]);
        all.push(Endless::new(&format!("{path}, declared"), body(&declared), " ", &[413]));
        all.push(Endless::new(&format!("{path}, chunked"), body(chunked), &chunk, &[413]));
    }
    let begin = &begin("POST", "/check");
    let in_chunks = head("/check", &[JSON, chunked]);
    let with = |begin: &str, more: &str| format!("{begin}{more}");
    all.extend([
        Endless::new("headers", with(begin, ""), "x: y\r\n", &[431]),
        Endless::new("one header", with(begin, "x: "), "y", &[431]),
        Endless::new("a path", "GET /".to_owned(), "y", &[414, 431]),
        Endless::new("a chunk's extension", with(&in_chunks, "1;x="), "y", &[400]),
        Endless::new("trailers", with(&in_chunks, "0\r\n"), "x: y\r\n", &[400]),
        Endless::new("small chunks", in_chunks.clone(), "1\r\n \r\n", &[413]),
        Endless::new("a body for a GET endpoint", head("/metrics", &[&declared]), " ", &[405]),
        Endless::new("a body for an unknown path", head("/nothing", &[&declared]), " ", &[404]),
    ]);
    all
}

pub(super) fn endless_requests_are_closed_and_cost_no_memory(stage: &Stage) -> String {
    let node = stage.node().start();
    assert!(node.check("warm").is_exact());
    send_largest_valid(&node);
    let before = node.peak();
    let (mut max_sent, mut replies, all) = (0, 0, endless());
    for request in &all {
        let (sent, status) = send_until_closed(&node, request);
        assert!(sent < MAX_SENT, "{}: {sent} bytes were accepted", request.name);
        let is_expected = status.is_none_or(|status| request.statuses.contains(&status));
        assert!(is_expected, "{}: {status:?}", request.name);
        (max_sent, replies) = (max_sent.max(sent), replies + usize::from(status.is_some()));
    }
    let deep = assert_deep_refused(&mut node.client());
    // The kernel counts pages with a delay, so the reported peak may shrink.
    let growth = node.peak().saturating_sub(before);
    let bound = stage.scale().pick(32 << 20, 8 << 20);
    assert!(growth < bound, "memory grew by {growth} bytes");
    assert_eq!(
        node.check("warm").json()["count"],
        2,
        "the node still serves, and nothing was debited"
    );
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!(
        "{} endless requests closed after at most {} MiB, {replies} with a status; {deep} deeply nested ones refused; \
         {} KiB more memory than the largest valid requests",
        all.len(),
        max_sent >> 20,
        growth >> 10
    )
}

/// Sends the largest valid bodies, often enough to reach every thread of the node, so that their memory is part of the
/// baseline.
fn send_largest_valid(node: &Node) {
    let largest = [("/explain", 64 << 10), (BATCH, 1 << 20), ("/release", 2 << 20)];
    for (path, length) in largest.repeat(REPETITIONS) {
        let spaces = " ".repeat(length);
        let chunks = format!("transfer-encoding: chunked\r\n\r\n{length:x}\r\n{spaces}\r\n0\r\n");
        let declared = node.post(path, &spaces);
        let mut client = node.client();
        client.write(head(path, &[JSON, &chunks]).as_bytes()).expect("the node reads");
        let chunked = client.receive().expect("the node responds");
        assert_eq!([declared.status, chunked.status], [400; 2], "{path}: {}", chunked.body);
    }
}

/// Sends until the node closes the connection. Returns the bytes sent, and the status if there is a response.
fn send_until_closed(node: &Node, request: &Endless) -> (usize, Option<u16>) {
    let mut client = node.client();
    let mut sent = 0;
    let mut chunk: &[u8] = request.begin.as_bytes();
    while sent < GIGABYTE && client.write(chunk).is_ok() {
        sent += chunk.len();
        chunk = &request.more;
    }
    (sent, client.receive().ok().map(|reply| reply.status))
}

/// Asserts that JSON as deep as a body allows is refused. Returns the number of cases.
fn assert_deep_refused(client: &mut Client) -> usize {
    const LENGTH: usize = 60_000;
    let nest = |begin: &str, open: &str| format!("{begin}{}", open.repeat(LENGTH / open.len()));
    let closed = |begin: &str, open: &str, close: &str| {
        let count = LENGTH / (open.len() + close.len());
        format!("{begin}{}1{}}}", open.repeat(count), close.repeat(count))
    };
    let all = [
        nest("", "["),
        nest("", r#"{"key":"#),
        nest(r#"{"key":"#, "["),
        nest(r#"{"facts":{"client":"#, r#"{"a":"#),
        nest(r#"{"limits":"#, "["),
        closed(r#"{"key":"#, "[", "]"),
        closed(r#"{"facts":"#, r#"{"a":"#, "}"),
        closed(r#"{"unknown":"#, "[", "]"),
    ];
    for query in &all {
        for path in DECIDING {
            let reply = client.post(path, query).expect("the node responds");
            assert_eq!(reply.status, 400, "{path}: {}", reply.body);
        }
    }
    let batch = format!(r#"{{"requests":[{}"#, "[".repeat(1_000_000));
    let reply = client.post(BATCH, batch).expect("the node responds");
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert_refused(client, r#"{"key":[[[[[[[[[[]]]]]]]]]]}"#, 400, "key");
    all.len() + 2
}
