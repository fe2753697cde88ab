//! Endless requests, and deeply nested JSON.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use tollgate_testkit::http2::{DATA, END_HEADERS, HEADERS, block, call_headers, frame, hello};
use tollgate_testkit::wait::MAX_WAIT;

use crate::canary::CHECK_TOKEN;
use crate::client::{Client, JSON, begin, head};
use crate::endpoints::{BATCH, DECIDING, assert_refused};
use crate::front_end::{DOMAIN, FrontEnd, Query};
use crate::grpc::GrpcReply;
use crate::node::Node;
use crate::policy::{Loss, per_client_everywhere};
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
    let node =
        stage.node().all_front_ends().policy(&per_client_everywhere("1000/h", Loss::Local)).start();
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
    for (name, front_end, begin, more) in endless_of_others() {
        let sent = send_raw(node.address_of(front_end), &begin, &more);
        assert!(sent < MAX_SENT, "{name}: {sent} bytes were accepted");
        max_sent = max_sent.max(sent);
    }
    let (sent, calls) = assert_endless_calls_refused(&node);
    max_sent = max_sent.max(sent);
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
    for front_end in FrontEnd::OTHERS {
        assert!(node.check_over(front_end, &Query::of("c")).is_allowed(), "{}", front_end.name());
    }
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!(
        "{} endless requests over HTTP and {} over RESP and gRPC closed after at most {} MiB, {replies} with a status; {calls}; {deep} deeply nested ones refused; \
         {} KiB more memory than the largest valid requests",
        all.len(),
        endless_of_others().len(),
        max_sent >> 20,
        growth >> 10
    )
}

/// Sends the largest valid bodies, often enough to reach every thread of the node, so that their memory is part of the
/// baseline.
fn send_largest_valid(node: &Node) {
    let largest = [("/explain", 64 << 10), (BATCH, 1 << 20), ("/release", 2 << 20)];
    let (mut resp, mut grpc, value) = (node.resp(), node.grpc(), "x".repeat(60_000));
    for _ in 0..REPETITIONS {
        assert_eq!(resp.call(&["ECHO", &value]).text(), value);
        let reply = grpc.check(DOMAIN, &[("client", &value)]);
        assert!(matches!(reply, Ok(GrpcReply::Decided { .. })), "{reply:?}");
    }
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

/// Endless commands, and data that HTTP/2 does not permit: name, front end, begin, and the bytes that are repeated.
fn endless_of_others() -> Vec<(&'static str, FrontEnd, Vec<u8>, Vec<u8>)> {
    let resp = |name, begin: &str, more: &str| {
        let begin = format!("AUTH {CHECK_TOKEN}\r\n{begin}").into_bytes();
        (name, FrontEnd::Resp, begin, more.repeat(CHUNK_SIZE / more.len()).into_bytes())
    };
    let before_login = |name, begin: &str| {
        (name, FrontEnd::Resp, begin.as_bytes().to_vec(), vec![b'x'; CHUNK_SIZE])
    };
    let mut headers = call_headers();
    headers.push(("authorization".to_owned(), format!("Bearer {CHECK_TOKEN}").into()));
    let head = [hello(), frame(HEADERS, END_HEADERS, 1, &block(&headers))].concat();
    let data = frame(DATA, 0, 1, &[0; 16_000]).repeat(CHUNK_SIZE / 16_000);
    // A message of the maximum length.
    let begin = [head, frame(DATA, 0, 1, &[0, 0, 1, 0, 0])].concat();
    vec![
        resp("a long argument", "*3\r\n$14\r\nTOLLGATE.CHECK\r\n$1073741824\r\n", "x"),
        resp("an inline command", "PING ", "x"),
        resp("inline arguments", "PING", " x"),
        resp("many arguments", "*1073741824\r\n", "$1\r\nx\r\n"),
        resp("nested arrays", "", "*1\r\n"),
        resp("a length", "*", "1"),
        before_login("a long argument before AUTH", "*2\r\n$4\r\nAUTH\r\n$1073741824\r\n"),
        before_login("an inline command before AUTH", "AUTH "),
        ("data beyond the windows", FrontEnd::Grpc, begin, data),
    ]
}

/// Asserts the gRPC status of too long and of endless messages, which are sent as fast as the node permits. Returns the maximum
/// number of bytes that were sent before a call was refused for its length, and a description.
fn assert_endless_calls_refused(node: &Node) -> (usize, String) {
    const RESOURCE_EXHAUSTED: u32 = 8;
    let mut max_sent = 0;
    // The prefixes of the longest message, of one with a byte more than the maximum of 64 KiB, and of empty messages.
    for prefix in [[0, 255, 255, 255, 255], [0, 0, 1, 0, 1], [0; 5]] {
        let (sent, code) = send_call(node, prefix);
        assert_eq!(code, RESOURCE_EXHAUSTED, "messages with the prefix {prefix:?}");
        assert!(sent < MAX_SENT, "messages with the prefix {prefix:?}: {sent} bytes were accepted");
        max_sent = max_sent.max(sent);
    }
    (max_sent, format!("too long and endless gRPC messages are status {RESOURCE_EXHAUSTED}"))
}

/// Sends a call with this prefix of a message and then zeros, until there is a response. Returns the number of bytes sent, and
/// the status.
fn send_call(node: &Node, prefix: [u8; 5]) -> (usize, u32) {
    let (begin, more) = (Bytes::copy_from_slice(&prefix), Bytes::from(vec![0; 16_000]));
    match node.grpc().send_until_answered(begin, more) {
        Ok((sent, GrpcReply::Status { code, .. })) => (sent, code),
        other => panic!("messages with the prefix {prefix:?}: {other:?}"),
    }
}

/// Sends until the node closes the connection. Returns the number of bytes sent.
fn send_raw(address: SocketAddr, begin: &[u8], more: &[u8]) -> usize {
    let mut stream = TcpStream::connect(address).expect("the node accepts connections");
    stream.set_write_timeout(Some(MAX_WAIT)).expect("the time-out is not zero");
    let (mut sent, mut bytes) = (0, begin);
    while sent < GIGABYTE {
        match stream.write(bytes) {
            Ok(written) if written < bytes.len() => {
                (sent, bytes) = (sent + written, &bytes[written..]);
            }
            Ok(written) => (sent, bytes) = (sent + written, more),
            Err(error) => {
                let is_stalled = error.kind() == ErrorKind::WouldBlock;
                assert!(!is_stalled, "the node neither reads nor closes the connection");
                break;
            }
        }
    }
    sent
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
