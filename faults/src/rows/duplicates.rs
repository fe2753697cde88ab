//! Duplicate JSON fields and duplicate headers.

use crate::client::{JSON, Reply, head, key};
use crate::endpoints::{BATCH, DECIDING, assert_refused};
use crate::front_end::{CLIENT_HEADER, DOMAIN};
use crate::grpc::{GrpcReply, request};
use crate::node::Node;
use crate::stage::Stage;

const POLICY: &str = "version: 1
defaults: { limit: 100/min }
facts: { client: [{ header: x-client }, ip] }
rules:
  - { name: grpc, match: { facts: { domain: faults } }, per: [\"entry:client\"], limits: [100/min] }
";

/// Queries with a duplicate field, and the field that the error names.
const DUPLICATE_FIELDS: [(&str, &str); 13] = [
    (r#"{"key":"a","key":"b"}"#, "key"),
    (r#"{"key":"a","key":"a"}"#, "key"),
    (r#"{"key":"a","\u006bey":"b"}"#, "key"),
    (r#"{"key":"a","cost":1,"cost":0}"#, "cost"),
    (r#"{"key":"a","tenant":"t","tenant":"u"}"#, "tenant"),
    (r#"{"facts":{"client":"a"},"facts":{"client":"b"}}"#, "facts"),
    (r#"{"facts":{"client":"a","client":"b"}}"#, "facts.client"),
    (r#"{"facts":{"client":"a","path":"/x","path":"/y"}}"#, "facts.path"),
    (r#"{"facts":{"client":"a","\u0063lient":"b"}}"#, "facts.client"),
    (r#"{"facts":{"client":"a","tenant":"t"},"tenant":"u"}"#, "tenant"),
    (
        r#"{"key":"a","limits":[{"limit":1,"window_ms":1}],"limits":[{"limit":9,"window_ms":1}]}"#,
        "limits",
    ),
    (r#"{"key":"a","limits":[{"limit":1,"limit":9,"window_ms":1}]}"#, "limits[0].limit"),
    (r#"{"key":"a","limits":[{"limit":1,"window_ms":1,"window_ms":9}]}"#, "limits[0].window_ms"),
];

/// Bodies of other endpoints with a duplicate field.
const OTHER_BODIES: [(&str, &str); 3] = [
    (BATCH, r#"{"requests":[{"key":"a"}],"requests":[]}"#),
    ("/release", r#"{"permit":"a","permit":"b"}"#),
    ("/renew", r#"{"permit":"a","permit":"b"}"#),
];

/// Contradicting or duplicate header lines, and the expected status. `#` stands for the length of the body.
const HEADERS: [(&str, &str, u16); 6] = [
    ("two equal content types", "content-type: application/json\r\ncontent-length: #\r\n", 415),
    ("two different content types", "content-type: text/plain\r\ncontent-length: #\r\n", 415),
    ("two lengths", "content-length: #\r\ncontent-length: 1\r\n", 400),
    ("two lengths in one line", "content-length: #, 1\r\n", 400),
    ("a length below zero", "content-length: #\r\ncontent-length: -1\r\n", 400),
    ("an unknown encoding", "content-length: #\r\ntransfer-encoding: gzip\r\n", 400),
];

/// Header lines that are repeated with the same value, or that the node does not read.
const HARMLESS: [&str; 3] = [
    "content-length: #\r\ncontent-length: #\r\n",
    "content-length: #\r\nauthorization: a\r\nauthorization: b\r\n",
    "content-length: #\r\nx-id: 1\r\nx-id: 2\r\n",
];

pub(super) fn duplicates_are_refused_on_every_endpoint(stage: &Stage) -> String {
    // A node without tokens does not read the authorization header.
    let node = stage.node().open().all_front_ends().policy(POLICY).start();
    let mut client = node.client();
    for (query, field) in DUPLICATE_FIELDS {
        assert_refused(&mut client, query, 400, field);
    }
    for (path, body) in OTHER_BODIES {
        let reply = client.post(path, body).expect("the node responds");
        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
    }
    let paths: Vec<&str> = DECIDING.into_iter().chain([BATCH]).collect();
    for (case, lines, status) in HEADERS {
        for path in &paths {
            assert_eq!(send_with(&node, path, lines).status, status, "{path}: {case}");
        }
    }
    for path in &paths {
        for lines in HARMLESS {
            assert_eq!(send_with(&node, path, lines).status, 200, "{path}: {lines}");
        }
        assert_encoding_counts(&node, path);
    }
    assert_eq!(node.count(&key("a")), Some(0), "nothing was debited");
    assert_resp_refused(&node);
    assert_grpc_first_entry_counts(&node);
    assert_auth_refused(&node);
    assert_eq!(node.count(&key("a")), Some(0), "nothing was debited");
    format!(
        "{} queries and {} other bodies with a duplicate field: 400 on every endpoint, naming the field; {} pairs of \
         contradicting headers: 400, two content types 415; RESP: an error; gRPC: the first entry of a key counts; /auth: 400, \
         and a client header that occurs twice counts as missing",
        DUPLICATE_FIELDS.len(),
        OTHER_BODIES.len(),
        HEADERS.len()
    )
}

/// Sends a valid request with additional header lines.
fn send_with(node: &Node, path: &str, lines: &str) -> Reply {
    let body = valid_body(path);
    let lines = lines.replace('#', &body.len().to_string());
    send(node, &(head(path, &[JSON, &lines]) + &body))
}

/// Asserts that with both a length and an encoding the encoding counts and the connection closes, so that a proxy
/// that uses the length cannot smuggle in a second request.
fn assert_encoding_counts(node: &Node, path: &str) {
    let body = valid_body(path);
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for lines in [
        ["content-length: 5\r\n", "transfer-encoding: chunked\r\n"],
        ["transfer-encoding: chunked\r\n", "content-length: 5\r\n"],
    ] {
        let reply = send(node, &(head(path, &[&[JSON], &lines[..]].concat()) + &chunked));
        let seen = (reply.status, reply.header("connection"));
        assert_eq!(seen, (200, Some("close")), "{path} {lines:?}: {}", reply.body);
    }
}

fn valid_body(path: &str) -> String {
    let query = key("head");
    if path == BATCH { format!(r#"{{"requests":[{query}]}}"#) } else { query }
}

fn send(node: &Node, request: &str) -> Reply {
    let mut client = node.client();
    client.write(request.as_bytes()).expect("the node reads");
    client.receive().expect("the node responds")
}

/// Asserts that RESP refuses a fact, an amount or an option that occurs twice.
fn assert_resp_refused(node: &Node) {
    let mut resp = node.resp();
    for words in [
        "TOLLGATE.CHECK client=a client=b",
        "TOLLGATE.CHECK client=a client=a",
        "TOLLGATE.CHECK a client=b",
        "TOLLGATE.CHECK client=a path=/x path=/y",
        "TOLLGATE.CHECK client=a tenant=t tenant=u",
        "TOLLGATE.CHECK client=a COST 1 COST 0",
        "TOLLGATE.CHECK client=a COST requests=1 COST requests=0",
        "TOLLGATE.RESERVE client=a COST 1 TTL 1000 TTL 2000",
        "TOLLGATE.RESERVE client=a COST 1 ID x ID y",
    ] {
        let reply = resp.call(&words.split(' ').collect::<Vec<_>>());
        assert!(reply.is_error() && reply.error().starts_with("ERR "), "{words}: {reply:?}");
    }
}

/// Asserts the documented rule of gRPC: if a key occurs twice, `entry:KEY` is the first of the two.
fn assert_grpc_first_entry_counts(node: &Node) {
    let mut grpc = node.grpc();
    let mut send = |entries: &[(&[u8], &[u8])]| {
        grpc.call(&request(DOMAIN, entries, None)).expect("the node responds")
    };
    let left = |remaining| GrpcReply::Decided { is_over: false, remaining };
    assert_eq!(send(&[(b"client", b"a"), (b"client", b"b")]), left(99));
    assert_eq!(send(&[(b"client", b"b"), (b"client", b"a")]), left(99));
    assert_eq!(send(&[(b"client", b"a")]), left(98));
}

/// Asserts that a header that describes the request twice is 400, and two client headers count as none.
fn assert_auth_refused(node: &Node) {
    for name in ["x-forwarded-uri", "x-forwarded-method", "x-forwarded-host"] {
        let uri: (&str, &[u8]) = ("x-forwarded-uri", b"/a");
        let reply = node.auth(&[uri, ("x-forwarded-method", b"GET"), (name, b"/b")]);
        assert_eq!(reply.status, 400, "{name}: {}", reply.body);
    }
    let remaining = |headers: &[(&str, &[u8])]| {
        let reply = node.auth(&[&[("x-forwarded-uri", &b"/"[..])], headers].concat());
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.header("x-ratelimit-remaining").and_then(|text| text.parse::<u64>().ok())
    };
    assert_eq!(remaining(&[]), Some(99), "the client is the address");
    assert_eq!(remaining(&[(CLIENT_HEADER, b"a"), (CLIENT_HEADER, b"b")]), Some(98));
}
