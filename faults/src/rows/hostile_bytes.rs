//! Invalid UTF-8, and control characters that could start a new line in logs, headers or metrics.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::common::on_both_stores;
use crate::client::{Client, JSON, Reply, begin, head, key};
use crate::endpoints::{DECIDING, assert_refused, send};
use crate::front_end::{CLIENT_HEADER, DOMAIN};
use crate::grpc::{GrpcReply, request};
use crate::node::Node;
use crate::redis;
use crate::setup::Setup;
use crate::stage::Stage;

/// The text that an injection would show in logs, headers or metrics. In lower case, as the client reads headers.
const MARK: &str = "injected";

/// Similar texts. Each has its own counter, byte for byte.
const TEXTS: [&str; 20] = [
    "a",
    "A",
    "a\0",
    "a\0b",
    "a\n",
    "a\r\n",
    "a\r",
    "a ",
    " a",
    "a%00",
    "a%0D%0A",
    "a\\n",
    "a\u{fffd}",
    "\u{feff}a",
    "é",
    "e\u{301}",
    "\u{202e}a",
    "\u{1b}[31minjected",
    "a\r\ninjected: yes\r\n\r\n",
    "a\"} 1\ninjected{x=\"y\"} 1\n",
];

/// Invalid content of a JSON string.
const INVALID_TEXTS: [&[u8]; 10] = [
    b"\xff",
    b"a\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf5\x80\x80\x80",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"a\nb",
    b"a\r\ninjected: yes",
    b"a\0b",
];

/// Invalid or unknown request targets.
const TARGETS: [&[u8]; 9] = [
    b"/\xff\xfe",
    b"/check\0",
    b"/a\rinjected: yes",
    b"/check injected: yes",
    b"/check%0d%0ainjected:%20yes",
    b"/%ff%00",
    b"/api/counters?prefix=%ff",
    b"/api/counters?tenant=%c0%80",
    b"/api/counters?cursor=%0d%0ainjected:%20yes",
];

/// Invalid header lines.
const HEADER_LINES: [&[u8]; 7] = [
    b"x: a\0b",
    b"x: a\rinjected: yes",
    b"x\0y: a",
    b"\xff: a",
    b"x : a",
    b"x: a\r\n folded",
    b"no header line",
];

/// The JSON before and after a text, and the field name in errors.
const PLACES: [(&str, &str, &str); 4] = [
    (r#"{"key":""#, r#""}"#, "key"),
    (r#"{"facts":{"client":"c","user":""#, r#""}}"#, "facts.user"),
    (r#"{"facts":{"client":"c","path":""#, r#""}}"#, "facts.path"),
    (r#"{"key":"k","tenant":""#, r#""}"#, "tenant"),
];

const POLICY: &str = "version: 1
defaults: { limit: 1000/h }
rules:
  - { name: users, match: { path: /user }, per: [user], limits: [1000/h] }
  - { name: headers, match: { path: /header }, per: [\"header:x\"], limits: [1000/h] }
";

/// The number of counters: four per text, and that of the client `first`.
const COUNTERS: usize = 4 * TEXTS.len() + 1;

/// Bytes that are not UTF-8. RESP counts them as they are.
const INVALID_UTF8: [&[u8]; 6] =
    [b"\xff", b"\xfe", b"a\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"];

/// The policy of nodes that receive hostile bytes over RESP, gRPC and forward auth.
const POLICY_OF_OTHERS: &str = "version: 1
defaults: { limit: 1000/h }
facts: { client: [{ header: x-client }] }
rules:
  - { name: grpc, match: { facts: { domain: faults } }, per: [\"entry:client\"], limits: [1000/h] }
";

pub(super) fn hostile_bytes_are_counted_unchanged_or_refused(stage: &Stage) -> String {
    let setup = |format: &str| {
        let node = stage.node().policy(POLICY).variable("TOLLGATE_LOG", "debug");
        node.with("log-format", format)
    };
    assert_unharmed(&setup("text"));
    assert_unharmed(&setup("json"));
    let server = redis::start();
    assert_unharmed(&setup("text").redis(&redis::url(&server)).patient());
    on_both_stores(stage, POLICY_OF_OTHERS, |node| {
        assert_resp_unharmed(node);
        assert_grpc_unharmed(node);
        assert_auth_unharmed(node);
        assert!(!node.get("/metrics").body.contains(MARK));
        assert_log_lines_intact(node);
    });
    assert_starts_refused(stage);
    format!(
        "{} texts in {} fields have separate counters, byte for byte; {} invalid texts, {} targets and {} header lines \
         are refused; no injection in logs, headers and metrics, in memory and on Redis; the same over RESP, which counts invalid \
         UTF-8 byte for byte, gRPC, which refuses it, and /auth",
        TEXTS.len(),
        PLACES.len(),
        INVALID_TEXTS.len(),
        TARGETS.len(),
        HEADER_LINES.len()
    )
}

fn assert_unharmed(setup: &Setup<'_>) {
    let node = setup.start();
    let mut client = node.client();
    assert!(client.post("/check", key("first")).is_ok_and(|reply| reply.is_exact()));
    let series = series(&node);
    TEXTS.iter().for_each(|text| assert_first(&mut client, text));
    assert_eq!(counters(&mut client), COUNTERS, "each text has its own counters");
    for (begin, end, field) in PLACES {
        for bytes in INVALID_TEXTS {
            assert_invalid_text_refused(
                &mut client,
                &[begin.as_bytes(), bytes, end.as_bytes()].concat(),
                field,
            );
        }
    }
    for name in ["a\\r\\ninjected", "a\\u0000", "", "a b", "ä"] {
        let query = format!(r#"{{"facts":{{"client":"c","{name}":"v"}}}}"#);
        let name: Value = serde_json::from_str(&format!("\"facts.{name}\"")).expect("a text");
        assert_refused(&mut client, query, 400, name.as_str().expect("a text"));
    }
    TARGETS.iter().for_each(|target| assert_target_refused(&node, target));
    HEADER_LINES.iter().for_each(|line| assert_line_refused(&node, line));
    assert_eq!(counters(&mut client), COUNTERS, "refused requests have no counter");
    assert_eq!(self::series(&node), series, "no metric was added");
    assert_log_lines_intact(&node);
}

/// Asserts that this text has no usage yet, and that responses show it unchanged.
fn assert_first(client: &mut Client, text: &str) {
    for reply in send(client, key(text).as_bytes()) {
        assert_eq!(reply.status, 200, "{text:?} {}: {}", reply.path, reply.body);
        // A take, a peek, a refund, then another take.
        let count = match reply.path {
            "/explain" => continue,
            "/refund" => 0,
            _ => 1,
        };
        assert_eq!(reply.body["count"], count, "{text:?} {}", reply.path);
        assert_eq!(reply.body["key"], text, "{}", reply.path);
    }
    // As a tenant, a user and a header the text has other counters; a path has none.
    for (query, count, shown) in [
        (json!({ "key": "first", "tenant": text }), 1, "first"),
        (json!({ "facts": { "client": "first", "path": "/user", "user": text } }), 1, text),
        (json!({ "facts": { "client": "first", "path": "/header", "header:x": text } }), 1, text),
        (json!({ "facts": { "client": "first", "path": text }, "cost": 0 }), 1, "first"),
    ] {
        let reply = client.post("/check", query.to_string()).expect("the node responds");
        let json = reply.json();
        assert_eq!((&json["count"], &json["key"]), (&count.into(), &shown.into()), "{query}");
        assert_no_injection(&reply);
    }
}

/// Asserts that every endpoint refuses invalid UTF-8; as a batch item it makes the whole batch invalid.
fn assert_invalid_text_refused(client: &mut Client, query: &[u8], field: &str) {
    let shown = String::from_utf8_lossy(query).into_owned();
    for path in DECIDING {
        let reply = client.post(path, query).expect("the node responds");
        let json = reply.json();
        assert_eq!((reply.status, &json["field"]), (400, &field.into()), "{path} {shown}: {json}");
        assert_no_injection(&reply);
    }
    let batch = send(client, query).pop().expect("the last is the batch");
    assert_eq!(batch.status, 400, "{shown}: {}", batch.body);
}

fn assert_target_refused(node: &Node, target: &[u8]) {
    let request = begin("GET", "/api/") + "\r\n";
    let (method, rest) = request.split_once("/api/").expect("the path is in the request");
    let reply = send_raw(node, &[method.as_bytes(), target, rest.as_bytes()].concat());
    assert!([400, 404].contains(&reply.status), "{target:?}: {} {}", reply.status, reply.body);
}

fn assert_line_refused(node: &Node, line: &[u8]) {
    let query = key("refused");
    let length = format!("content-length: {}\r\n", query.len());
    let begin = head("/check", &[JSON, &length]);
    let begin = begin.strip_suffix("\r\n").expect("the head ends with an empty line").as_bytes();
    let reply = send_raw(node, &[begin, line, b"\r\n\r\n", query.as_bytes()].concat());
    assert_eq!(reply.status, 400, "{line:?}: {}", reply.body);
}

fn send_raw(node: &Node, request: &[u8]) -> Reply {
    let mut client = node.client();
    client.write(request).expect("the node reads");
    let reply = client.receive().expect("the node responds");
    assert_no_injection(&reply);
    reply
}

fn assert_no_injection(reply: &Reply) {
    assert!(!reply.head.contains(MARK), "{}", reply.head);
}

/// Metrics whose series appear with their first value. Their labels are fixed.
const LATE_SERIES: [&str; 2] = ["tollgate_http_request", "rate_limit_tokens_remaining"];

/// The names and labels of all metrics.
fn series(node: &Node) -> BTreeSet<String> {
    let text = node.get("/metrics").body;
    assert!(!text.contains(MARK), "{text}");
    text.lines()
        .filter(|line| !LATE_SERIES.iter().any(|name| line.starts_with(name)))
        .map(|line| line.rsplit_once(' ').map_or(line, |(name, _)| name).to_owned())
        .collect()
}

/// The number of counters.
fn counters(client: &mut Client) -> usize {
    let reply = client.get("/api/counters?limit=1000").expect("the node responds").json();
    assert!(reply["cursor"].is_null(), "one page is enough: {reply}");
    reply["counters"].as_array().expect("a list").len()
}

/// Asserts that the node started every log line itself, and that none contains control characters.
fn assert_log_lines_intact(node: &Node) {
    let log = node.log();
    for line in log.lines() {
        let is_log_line = line.starts_with(['2', '{']) || line.starts_with("listening on ");
        assert!(is_log_line && !line.chars().any(char::is_control), "{line:?}");
        let is_json = serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object());
        assert!(is_json || !line.starts_with('{'), "{line:?}");
    }
}

/// Asserts that RESP counts each text and each invalid text separately, and that no reply has a line of its own.
fn assert_resp_unharmed(node: &Node) {
    let mut resp = node.resp();
    for remaining in [999, 998] {
        for text in TEXTS.iter().map(|text| text.as_bytes()).chain(INVALID_UTF8) {
            let client = [b"client=over RESP ", text].concat();
            let reply = resp.call(&[b"TOLLGATE.CHECK", &client[..]]);
            assert_eq!(reply.array()[2].int(), remaining, "{text:?}: {reply:?}");
        }
    }
    let names: [&[u8]; 4] = [b"\xff=v", b"a\r\n+injected=v", b"a\0=v", b"=v"];
    for name in names {
        let reply = resp.call(&[&b"TOLLGATE.CHECK"[..], b"client=c", name]);
        assert!(reply.error().starts_with("ERR "), "{name:?}: {reply:?}");
    }
    let commands: [&[u8]; 3] = [b"x\r\n+injected", b"\xff\0", b"TOLLGATE.CHECK\n"];
    for command in commands {
        let reply = resp.call(&[command]);
        assert!(reply.error().starts_with("ERR "), "{command:?}: {reply:?}");
        // The next reply is that of the next command, so the error was one line.
        assert_eq!(resp.call(&["PING"]).text(), "PONG", "after {command:?}");
    }
}

/// Asserts that gRPC counts each text separately, and refuses invalid UTF-8, which protobuf does not permit.
fn assert_grpc_unharmed(node: &Node) {
    let mut grpc = node.grpc();
    let mut send = |key: &[u8], value: &[u8]| {
        grpc.call(&request(DOMAIN, &[(key, value)], None)).expect("a reply")
    };
    for remaining in [999, 998] {
        for text in TEXTS {
            let reply = send(b"client", text.as_bytes());
            assert_eq!(reply, GrpcReply::Decided { is_over: false, remaining }, "{text:?}");
        }
    }
    for (key, value) in INVALID_UTF8.iter().flat_map(|text| [(*text, &b"v"[..]), (b"client", text)])
    {
        let reply = send(key, value);
        let GrpcReply::Status { code, message } = &reply else { panic!("{value:?}: {reply:?}") };
        assert!(*code != 0 && !message.contains(MARK), "{value:?}: {reply:?}");
    }
}

/// Asserts that auth requests with control characters are refused, and other bytes are counted separately.
fn assert_auth_unharmed(node: &Node) {
    let send = |value: &[u8]| node.auth(&[("x-forwarded-uri", b"/"), (CLIENT_HEADER, value)]);
    for value in [&b"a\0b"[..], b"a\rinjected: yes", b"a\x01", b"a\x7f"] {
        let reply = send(value);
        assert_eq!(reply.status, 400, "{value:?}: {}", reply.body);
        assert_no_injection(&reply);
    }
    for path in [&b"/a\0"[..], b"/a\rinjected: yes", b"/%zz", b"/%"] {
        let reply = node.auth(&[("x-forwarded-uri", path), (CLIENT_HEADER, b"c")]);
        assert_eq!(reply.status, 400, "{path:?}: {}", reply.body);
        assert_no_injection(&reply);
    }
    for remaining in ["999", "998"] {
        for value in [&b"a\xff"[..], b"a\xfe", b"a\xef\xbf\xbd", "é".as_bytes(), b"a%ff"] {
            let reply = send(value);
            let seen = (reply.status, reply.header("x-ratelimit-remaining"));
            assert_eq!(seen, (200, Some(remaining)), "{value:?} shares a counter");
            assert_no_injection(&reply);
        }
    }
}

/// Asserts that startup errors show invalid names in policies and settings without starting a new line.
fn assert_starts_refused(stage: &Stage) {
    let rule = "version: 1\nrules: [{ name: \"a\\r\\ninjected: b\", limits: [1/s] }]\n";
    let field = "version: 1\n\"a\\r\\ninjected: b\": 1\n";
    for setup in [
        stage.node().policy(rule),
        stage.node().policy(field),
        stage.node().with("node-id", "a\r\ninjected: b"),
    ] {
        let reply = setup.fails_to_start();
        assert!(!reply.lines().any(|line| line.starts_with(MARK)), "{reply}");
        assert!(!reply.contains('\r'), "{reply:?}");
    }
}
