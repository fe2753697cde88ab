//! Bytes that are no text, and text that would be more than one line.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::{Client, JSON, Reply, begin, head, key};
use crate::endpoints::{DECIDING, assert_refused, send};
use crate::node::Node;
use crate::redis;
use crate::setup::Setup;
use crate::stage::Stage;

/// What would stand alone in a log, a head or the metrics, were it let in. In small letters, as heads are read.
const MARK: &str = "injected";

/// Texts that a careless reader takes for one another. Each is counted by itself, to the byte.
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

/// Texts as JSON has them that are no text at all.
const NO_TEXTS: [&[u8]; 10] = [
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

/// Targets of a request that are none, or none of ours.
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

/// Lines of a head that are none.
const LINES: [&[u8]; 7] = [
    b"x: a\0b",
    b"x: a\rinjected: yes",
    b"x\0y: a",
    b"\xff: a",
    b"x : a",
    b"x: a\r\n folded",
    b"no line of a head",
];

/// Where a text may stand, around it, and what a problem calls that place.
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

/// A counter for each text by each of these, and one that nobody is to be taken for.
const COUNTERS: usize = 4 * TEXTS.len() + 1;

pub(super) fn hostile_bytes_are_counted_unchanged_or_refused(stage: &Stage) -> String {
    let loud = |format: &str| {
        let setup = stage.node().policy(POLICY).variable("TOLLGATE_LOG", "debug");
        setup.with("log-format", format)
    };
    assert_borne(&loud("text"));
    assert_borne(&loud("json"));
    let server = redis::start();
    assert_borne(&loud("text").redis(&redis::url(&server)).patient());
    assert_starts_refused(stage);
    format!(
        "{} texts in {} places count apart, to the byte; {} that are none, {} targets and {} lines of a head are \
         refused; nothing of them in the logs, heads and metrics of memory and Redis",
        TEXTS.len(),
        PLACES.len(),
        NO_TEXTS.len(),
        TARGETS.len(),
        LINES.len()
    )
}

fn assert_borne(setup: &Setup<'_>) {
    let node = setup.start();
    let mut client = node.client();
    assert!(client.post("/check", key("first")).is_ok_and(|reply| reply.is_exact()));
    let series = series(&node);
    TEXTS.iter().for_each(|text| assert_first(&mut client, text));
    assert_eq!(listed(&mut client), COUNTERS, "each has a counter of its own");
    for (begin, end, field) in PLACES {
        for bytes in NO_TEXTS {
            assert_no_text(&mut client, &[begin.as_bytes(), bytes, end.as_bytes()].concat(), field);
        }
    }
    for name in ["a\\r\\ninjected", "a\\u0000", "", "a b", "ä"] {
        let question = format!(r#"{{"facts":{{"client":"c","{name}":"v"}}}}"#);
        let name: Value = serde_json::from_str(&format!("\"facts.{name}\"")).expect("a text");
        assert_refused(&mut client, question, 400, name.as_str().expect("a text"));
    }
    TARGETS.iter().for_each(|target| assert_target_refused(&node, target));
    LINES.iter().for_each(|line| assert_line_refused(&node, line));
    assert_eq!(listed(&mut client), COUNTERS, "what is refused counts nowhere");
    assert_eq!(self::series(&node), series, "no metric was added");
    assert_log_whole(&node);
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
    for (question, count, shown) in [
        (json!({ "key": "first", "tenant": text }), 1, "first"),
        (json!({ "facts": { "client": "first", "path": "/user", "user": text } }), 1, text),
        (json!({ "facts": { "client": "first", "path": "/header", "header:x": text } }), 1, text),
        (json!({ "facts": { "client": "first", "path": text }, "cost": 0 }), 1, "first"),
    ] {
        let reply = client.post("/check", question.to_string()).expect("the node responds");
        let json = reply.json();
        assert_eq!((&json["count"], &json["key"]), (&count.into(), &shown.into()), "{question}");
        assert_unmarked(&reply);
    }
}

/// Asserts that every endpoint refuses invalid UTF-8; as a batch item it makes the whole batch invalid.
fn assert_no_text(client: &mut Client, question: &[u8], field: &str) {
    let shown = String::from_utf8_lossy(question).into_owned();
    for path in DECIDING {
        let reply = client.post(path, question).expect("the node responds");
        let json = reply.json();
        assert_eq!((reply.status, &json["field"]), (400, &field.into()), "{path} {shown}: {json}");
        assert_unmarked(&reply);
    }
    let batch = send(client, question).pop().expect("the last is the batch");
    assert_eq!(batch.status, 400, "{shown}: {}", batch.body);
}

fn assert_target_refused(node: &Node, target: &[u8]) {
    let request = begin("GET", "/api/") + "\r\n";
    let (method, rest) = request.split_once("/api/").expect("it was asked for");
    let reply = answer(node, &[method.as_bytes(), target, rest.as_bytes()].concat());
    assert!([400, 404].contains(&reply.status), "{target:?}: {} {}", reply.status, reply.body);
}

fn assert_line_refused(node: &Node, line: &[u8]) {
    let question = key("refused");
    let length = format!("content-length: {}\r\n", question.len());
    let begin = head("/check", &[JSON, &length]);
    let begin = begin.strip_suffix("\r\n").expect("heads end so").as_bytes();
    let reply = answer(node, &[begin, line, b"\r\n\r\n", question.as_bytes()].concat());
    assert_eq!(reply.status, 400, "{line:?}: {}", reply.body);
}

fn answer(node: &Node, request: &[u8]) -> Reply {
    let mut client = node.client();
    client.write(request).expect("the node reads");
    let reply = client.receive().expect("the node responds");
    assert_unmarked(&reply);
    reply
}

fn assert_unmarked(reply: &Reply) {
    assert!(!reply.head.contains(MARK), "{}", reply.head);
}

/// The names and labels of all metrics.
fn series(node: &Node) -> BTreeSet<String> {
    let text = node.get("/metrics").body;
    assert!(!text.contains(MARK), "{text}");
    text.lines()
        .map(|line| line.rsplit_once(' ').map_or(line, |(name, _)| name).to_owned())
        .collect()
}

/// How many counters there are.
fn listed(client: &mut Client) -> usize {
    let reply = client.get("/api/counters?limit=1000").expect("the node responds").json();
    assert!(reply["cursor"].is_null(), "one page is enough: {reply}");
    reply["counters"].as_array().expect("a list").len()
}

/// No line of the log was begun by anybody else, and none rings a bell or paints.
fn assert_log_whole(node: &Node) {
    let log = node.log();
    for line in log.lines() {
        let is_ours = line.starts_with(['2', '{']) || line.starts_with("listening on ");
        assert!(is_ours && !line.chars().any(char::is_control), "{line:?}");
        let is_json = serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object());
        assert!(is_json || !line.starts_with('{'), "{line:?}");
    }
}

/// What operators write is reply in one line as well.
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
