//! What comes twice: fields of a question, lines of a head.

use crate::client::{JSON, Reply, head, key};
use crate::endpoints::{BATCH, DECIDING, assert_refused};
use crate::node::Node;
use crate::stage::Stage;

/// Questions in which a field comes twice, and the field that is named.
const TWICE: [(&str, &str); 13] = [
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

/// Bodies of other paths in which a field comes twice.
const OTHERS: [(&str, &str); 3] = [
    (BATCH, r#"{"requests":[{"key":"a"}],"requests":[]}"#),
    ("/release", r#"{"permit":"a","permit":"b"}"#),
    ("/renew", r#"{"permit":"a","permit":"b"}"#),
];

/// Lines of a head that contradict each other, or are one too many, and the status that tells so. The length
/// of the body is in place of the hash.
const HEADS: [(&str, &str, u16); 6] = [
    ("two types", "content-type: application/json\r\ncontent-length: #\r\n", 415),
    ("two kinds of types", "content-type: text/plain\r\ncontent-length: #\r\n", 415),
    ("two lengths", "content-length: #\r\ncontent-length: 1\r\n", 400),
    ("two lengths in one", "content-length: #, 1\r\n", 400),
    ("a length below zero", "content-length: #\r\ncontent-length: -1\r\n", 400),
    ("an encoding that is none", "content-length: #\r\ntransfer-encoding: gzip\r\n", 400),
];

/// Lines that say the same twice, or that nobody reads.
const HARMLESS: [&str; 3] = [
    "content-length: #\r\ncontent-length: #\r\n",
    "content-length: #\r\nauthorization: a\r\nauthorization: b\r\n",
    "content-length: #\r\nx-id: 1\r\nx-id: 2\r\n",
];

pub(super) fn duplicates_are_refused_on_every_endpoint(stage: &Stage) -> String {
    // Where anybody may ask nobody reads who it is.
    let node = stage.node().open().start();
    let mut client = node.client();
    for (question, field) in TWICE {
        assert_refused(&mut client, question, 400, field);
    }
    for (path, body) in OTHERS {
        let reply = client.post(path, body).expect("the node responds");
        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
    }
    let paths: Vec<&str> = DECIDING.into_iter().chain([BATCH]).collect();
    for (what, lines, status) in HEADS {
        for path in &paths {
            assert_eq!(answer(&node, path, lines).status, status, "{path}: {what}");
        }
    }
    for path in &paths {
        for lines in HARMLESS {
            assert_eq!(answer(&node, path, lines).status, 200, "{path}: {lines}");
        }
        assert_encoding_counts(&node, path);
    }
    assert_eq!(node.count(&key("a")), Some(0), "nothing was taken");
    format!(
        "{} questions and {} other bodies with a field twice: 400, on every path, the field named; {} heads that \
         contradict themselves: 400, of types 415",
        TWICE.len(),
        OTHERS.len(),
        HEADS.len()
    )
}

/// What a good question is reply whose head has these lines too.
fn answer(node: &Node, path: &str, lines: &str) -> Reply {
    let body = question(path);
    let lines = lines.replace('#', &body.len().to_string());
    send(node, &(head(path, &[JSON, &lines]) + &body))
}

/// Who reads by the length and who reads by the encoding would see two requests or one: one is read, and what
/// follows it on that connection is not.
fn assert_encoding_counts(node: &Node, path: &str) {
    let body = question(path);
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

fn question(path: &str) -> String {
    let question = key("head");
    if path == BATCH { format!(r#"{{"requests":[{question}]}}"#) } else { question }
}

fn send(node: &Node, request: &str) -> Reply {
    let mut client = node.client();
    client.write(request.as_bytes()).expect("the node reads");
    client.receive().expect("the node responds")
}
