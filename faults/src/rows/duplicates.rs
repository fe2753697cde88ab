//! What comes twice: fields of a question, lines of a head.

use crate::client::{Client, JSON, head, key};
use crate::everywhere::{BATCH, DECIDING, assert_refused};
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
    ("/release", r#"{"lease":"a","lease":"b"}"#),
    ("/renew", r#"{"lease":"a","lease":"b"}"#),
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

pub(super) fn what_comes_twice_is_refused_alike_on_every_path(stage: &Stage) -> String {
    let node = stage.node().start();
    let mut client = node.client();
    for (question, field) in TWICE {
        assert_refused(&mut client, question, 400, field);
    }
    for (path, body) in OTHERS {
        let reply = client.post(path, body).expect("a node answers");
        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
    }
    let paths: Vec<&str> = DECIDING.into_iter().chain([BATCH]).collect();
    for (what, lines, status) in HEADS {
        for path in &paths {
            let seen = status_of(&node, path, lines);
            assert_eq!(seen, status, "{path}: {what}");
        }
    }
    // What nobody reads may come as often as it likes.
    for path in &paths {
        let lines =
            "content-length: #\r\nauthorization: a\r\nauthorization: b\r\nx-id: 1\r\nx-id: 2\r\n";
        assert_eq!(status_of(&node, path, lines), 200, "{path}");
    }
    let taken = node.count(&key("head"));
    // By /check and by the batch; what /refund gave back was not there.
    assert!(taken.is_some_and(|taken| taken <= 2), "{taken:?} were taken");
    assert_eq!(node.count(&key("a")), Some(0), "nothing was taken");
    format!(
        "{} questions and {} other bodies with a field twice: 400, on every path, the field named; {} heads that \
         contradict themselves: 400, of types 415",
        TWICE.len(),
        OTHERS.len(),
        HEADS.len()
    )
}

/// What a good question is told whose head has these lines too.
fn status_of(node: &Node, path: &str, lines: &str) -> u16 {
    let question = key("head");
    let body = if path == BATCH { format!(r#"{{"requests":[{question}]}}"#) } else { question };
    let lines = lines.replace('#', &body.len().to_string());
    let mut client: Client = node.client();
    let request = head(path, &[JSON, &lines]) + &body;
    client.write(request.as_bytes()).expect("a node reads");
    client.receive().expect("a node answers").status
}
