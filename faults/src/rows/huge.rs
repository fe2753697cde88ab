//! Requests that do not end, and some that nest without end.

use crate::client::{Client, JSON, begin, head};
use crate::endpoints::{BATCH, DECIDING, assert_refused};
use crate::node::Node;
use crate::stage::Stage;

/// What would be sent if nobody minded.
const GIGABYTE: usize = 1 << 30;

/// What may have left when the connection is cut: mostly what the system holds on its way.
const CUT: usize = 64 << 20;

/// What is sent at a time, about.
const PIECE: usize = 1 << 20;

/// How often it is asked what may be asked.
const OFTEN: usize = 32;

/// A request: what it is, how it begins, what follows again and again, and how it may be refused.
struct Endless {
    what: String,
    begin: String,
    more: Vec<u8>,
    statuses: &'static [u16],
}

impl Endless {
    fn new(what: &str, begin: String, more: &str, statuses: &'static [u16]) -> Self {
        let more = more.repeat(PIECE.div_ceil(more.len())).into_bytes();
        Self { what: what.to_owned(), begin, more, statuses }
    }
}

fn endless() -> Vec<Endless> {
    let declared = format!("content-length: {GIGABYTE}\r\n");
    let chunked = "transfer-encoding: chunked\r\n";
    let chunk = format!("{PIECE:x}\r\n{}\r\n", " ".repeat(PIECE));
    let mut all: Vec<Endless> = Vec::new();
    for path in DECIDING.into_iter().chain([BATCH, "/release", "/renew"]) {
        let body = |how| head(path, &[JSON, how]);
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
        Endless::new("a body where none is wanted", head("/metrics", &[&declared]), " ", &[405]),
        Endless::new("a body of no path", head("/nothing", &[&declared]), " ", &[404]),
    ]);
    all
}

pub(super) fn endless_requests_are_closed_and_cost_no_memory(stage: &Stage) -> String {
    let node = stage.node().start();
    assert!(node.check("warm").is_exact());
    ask_the_longest(&node);
    let before = node.peak();
    let (mut most, mut reply, all) = (0, 0, endless());
    for request in &all {
        let (sent, status) = pour(&node, request);
        assert!(sent < CUT, "{}: {sent} bytes were taken", request.what);
        let is_right = status.is_none_or(|status| request.statuses.contains(&status));
        assert!(is_right, "{}: {status:?}", request.what);
        (most, reply) = (most.max(sent), reply + usize::from(status.is_some()));
    }
    let deep = assert_deep_refused(&mut node.client());
    // The system counts pages by and by, and may know of fewer later.
    let grown = node.peak().saturating_sub(before);
    let bound = stage.scale().pick(32 << 20, 8 << 20);
    assert!(grown < bound, "{grown} bytes more");
    assert_eq!(node.check("warm").json()["count"], 2, "it serves on, and nothing was taken");
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!(
        "{} requests without end cut off after {} MiB at most, {reply} were reply why; {deep} nested ones \
         refused; {} KiB more than the longest that may be asked",
        all.len(),
        most >> 20,
        grown >> 10
    )
}

/// Asks as much as may be asked at once on each path, and often enough that every thread of a node has met it:
/// the memory for that is whoever asks entitled to.
fn ask_the_longest(node: &Node) {
    let longest = [("/explain", 64 << 10), (BATCH, 1 << 20), ("/release", 2 << 20)];
    for (path, length) in longest.repeat(OFTEN) {
        let spaces = " ".repeat(length);
        let how = format!("transfer-encoding: chunked\r\n\r\n{length:x}\r\n{spaces}\r\n0\r\n");
        let declared = node.post(path, &spaces);
        let mut client = node.client();
        client.write(head(path, &[JSON, &how]).as_bytes()).expect("the node reads");
        let chunked = client.receive().expect("the node responds");
        assert_eq!([declared.status, chunked.status], [400; 2], "{path}: {}", chunked.body);
    }
}

/// Sends until it is cut off: how many bytes left, and the status if one is reply.
fn pour(node: &Node, request: &Endless) -> (usize, Option<u16>) {
    let mut client = node.client();
    let mut sent = 0;
    let mut piece: &[u8] = request.begin.as_bytes();
    while sent < GIGABYTE && client.write(piece).is_ok() {
        sent += piece.len();
        piece = &request.more;
    }
    (sent, client.receive().ok().map(|reply| reply.status))
}

/// JSON that nests as deep as a body may be long; how many kinds.
fn assert_deep_refused(client: &mut Client) -> usize {
    const DEEP: usize = 60_000;
    let nest = |begin: &str, open: &str| format!("{begin}{}", open.repeat(DEEP / open.len()));
    let closed = |begin: &str, open: &str, shut: &str| {
        let count = DEEP / (open.len() + shut.len());
        format!("{begin}{}1{}}}", open.repeat(count), shut.repeat(count))
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
    for question in &all {
        for path in DECIDING {
            let reply = client.post(path, question).expect("the node responds");
            assert_eq!(reply.status, 400, "{path}: {}", reply.body);
        }
    }
    let batch = format!(r#"{{"requests":[{}"#, "[".repeat(1_000_000));
    let reply = client.post(BATCH, batch).expect("the node responds");
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert_refused(client, r#"{"key":[[[[[[[[[[]]]]]]]]]]}"#, 400, "key");
    all.len() + 2
}
