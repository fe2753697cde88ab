//! Invalid and out-of-range numbers in requests, settings and policies.

use std::fs;

use crate::endpoints::assert_refused;
use crate::front_end::DOMAIN;
use crate::grpc::{GrpcReply, request};
use crate::node::Node;
use crate::stage::Stage;

/// Invalid numbers, as text in JSON, YAML and environment variables.
const INVALID_NUMBERS: [&str; 10] = [
    "-1",
    "-9223372036854775808",
    "NaN",
    "Infinity",
    "1e308",
    "1e999",
    "1.5",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
];

/// 2^53: the first number that some JSON parsers do not represent exactly.
const TOO_LARGE: &str = "9007199254740992";

/// The largest accepted number.
const MAX_NUMBER: &str = "9007199254740991";

const LIMIT: i64 = 100;

const POLICY: &str = "version: 1
defaults: { limit: 100/min }
rules:
  - { name: grpc, match: { facts: { domain: faults } }, per: [\"entry:client\"], limits: [100/min] }
";

/// Numeric fields of a query: the JSON before and after the number, and the field name.
const FIELDS: [(&str, &str, &str); 5] = [
    (r#"{"key":"k","cost":"#, "}", "cost"),
    (r#"{"key":"k","limits":[{"window_ms":1000,"limit":"#, "}]}", "limits[0].limit"),
    (r#"{"key":"k","limits":[{"limit":1,"window_ms":"#, "}]}", "limits[0].window_ms"),
    (r#"{"key":"k","limits":[{"limit":1,"window_ms":1,"burst":"#, "}]}", "limits[0].burst"),
    (
        r#"{"key":"k","limits":[{"limit":1,"algorithm":"concurrency","ttl_ms":"#,
        "}]}",
        "limits[0].ttl_ms",
    ),
];

/// Numeric settings, by flag.
const SETTINGS: [&str; 9] = [
    "redis-timeout-ms",
    "report-ms",
    "node-lifetime-ms",
    "breaker-failures",
    "breaker-open-ms",
    "probe-ms",
    "max-keys",
    "max-connections",
    "drain-ms",
];

/// Numeric environment variables.
const VARIABLES: [&str; 2] = ["RATE_LIMIT_GLOBAL_CAPACITY", "RATE_LIMIT_GLOBAL_REFILL_PER_SEC"];

/// Lines of a rule with a number: the text before and after the number, and the field that the error names.
const RULE_LINES: [(&str, &str, &str); 6] = [
    ("limits: [", "/min]", "rules[0].limits[0]"),
    ("limits: [{ rate: ", "/min }]", "rules[0].limits[0]"),
    ("limits: [1/", "s]", "rules[0].limits[0]"),
    ("limits: [{ rate: 1/min, algorithm: token_bucket, burst: ", " }]", "rules[0].limits[0].burst"),
    ("limits: [{ concurrency: ", " }]", "rules[0].limits[0].concurrency"),
    ("cost: ", "", "rules[0].cost"),
];

pub(super) fn invalid_numbers_are_refused_naming_the_field(stage: &Stage) -> String {
    let node = stage.node().all_front_ends().policy(POLICY).start();
    let requests = assert_requests_refused(&node);
    let others = assert_resp_refused(&node) + assert_grpc_refused(&node);
    // Each number costs a start per setting, so the quick form uses only some.
    let numbers = stage.scale().pick(&INVALID_NUMBERS[4..8], &INVALID_NUMBERS[..]);
    let mut starts = 0;
    for number in numbers {
        starts += assert_settings_refused(stage, number) + assert_policies_refused(stage, number);
    }
    let documented = include_str!("../../../docs/POLICY.md");
    assert!(documented.contains("2^53 − 1"), "the largest number is documented");
    format!(
        "{requests} requests refused on five endpoints, naming the field, and {others} over RESP and gRPC; {starts} starts refused, naming the setting \
         or line, exit code 2; {MAX_NUMBER} (2^53 - 1) is the largest accepted number"
    )
}

/// Asserts that each number in each field is refused. Returns the number of requests.
fn assert_requests_refused(node: &Node) -> usize {
    let mut client = node.client();
    let mut count = 0;
    for (begin, end, field) in FIELDS {
        for number in INVALID_NUMBERS.into_iter().chain([TOO_LARGE]) {
            // Also as a JSON string, which is not a number.
            let text = format!("\"{number}\"");
            for number in [number, &text] {
                let query = format!("{begin}{number}{end}");
                // Invalid JSON makes the whole batch invalid, so there is no batch item to check.
                if number.starts_with(|first: char| first.is_ascii_uppercase()) {
                    let reply = client.post("/check", &query).expect("the node responds");
                    assert_eq!((reply.status, &reply.json()["field"]), (400, &field.into()));
                } else {
                    assert_refused(&mut client, &query, 400, field);
                }
                count += 1;
            }
        }
    }
    let max_cost = format!(r#"{{"key":"k","cost":{MAX_NUMBER}}}"#);
    let reply = client.post("/check", max_cost).expect("the node responds");
    assert_eq!((reply.status, &reply.json()["verdict"]), (200, &"never".into()), "{}", reply.body);
    let peeked = node.count(r#"{"key":"k"}"#);
    assert_eq!(peeked, Some(0), "nothing was debited");
    count
}

/// Asserts that RESP refuses each number as an amount, a limit and a period. Returns the number of commands.
fn assert_resp_refused(node: &Node) -> usize {
    let mut resp = node.resp();
    let mut count = 0;
    for number in INVALID_NUMBERS.into_iter().chain([TOO_LARGE]) {
        for amount in [number.to_owned(), format!("requests={number}")] {
            let reply = resp.call(&["TOLLGATE.CHECK", "client=k", "COST", &amount]);
            let text = reply.error();
            assert!(text.starts_with("ERR ") && text.contains("cost"), "{amount}: {text}");
            count += 1;
        }
        for place in 0..4 {
            let mut words = ["CL.THROTTLE", "k", "1", "1", "1", "1"];
            words[place + 2] = number;
            let reply = resp.call(&words);
            assert!(reply.error().starts_with("Cell error: "), "{words:?}: {reply:?}");
            words[0] = "THROTTLE";
            let reply = resp.call(&words);
            assert!(reply.error().starts_with("Cell error: "), "{words:?}: {reply:?}");
            count += 2;
        }
    }
    let reply = resp.call(&["TOLLGATE.CHECK", "client=k", "COST", MAX_NUMBER]);
    assert_eq!((reply.array()[0].int(), reply.array()[3].int()), (0, -1), "never: {reply:?}");
    let peeked = resp.call(&["TOLLGATE.PEEK", "client=k"]);
    assert_eq!(peeked.array()[2].int(), LIMIT, "nothing was debited");
    count
}

/// Asserts that no number of hits above the largest number is admitted. Returns the number of calls.
fn assert_grpc_refused(node: &Node) -> usize {
    let mut grpc = node.grpc();
    let mut send = |hits| grpc.call(&request(DOMAIN, &[(b"client", b"k")], Some(hits)));
    let all = [1 << 53, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    for hits in all {
        let reply = send(hits).expect("the node responds");
        let is_refused = matches!(
            reply,
            // INVALID_ARGUMENT.
            GrpcReply::Status { code: 3, .. } | GrpcReply::Decided { is_over: true, .. }
        );
        assert!(is_refused, "{hits}: {reply:?}");
    }
    let remaining = u64::try_from(LIMIT).expect("a small number");
    let peeked = send(0).expect("the node responds");
    assert_eq!(peeked, GrpcReply::Decided { is_over: false, remaining }, "nothing was debited");
    all.len()
}

/// Asserts that the node does not start with a number in the variable of a flag, in a settings file or in another variable. Returns the
/// number of starts.
fn assert_settings_refused(stage: &Stage, number: &str) -> usize {
    for setting in SETTINGS {
        let name = setting.replace('-', "_");
        let reply = stage.node().with(setting, number).fails_to_start();
        let variable = format!("TOLLGATE_{}", name.to_ascii_uppercase());
        assert!(reply.contains(&variable), "{setting}={number}: {reply}");
        let file = stage.scratch().write("settings.yaml", format!("{name}: {number}\n"));
        let reply = stage.node().with("config", &file).fails_to_start();
        let is_named = reply.contains(&format!("--{setting}")) || reply.contains(&name);
        assert!(is_named, "{name}: {number}: {reply}");
        fs::remove_file(file).expect("the file exists");
    }
    let variables = VARIABLES.iter().filter(|name| !is_valid(name, number));
    for name in variables.clone() {
        let reply = stage.node().variable(name, number).fails_to_start();
        assert!(reply.contains(name), "{name}={number}: {reply}");
    }
    2 * SETTINGS.len() + variables.count()
}

/// Returns whether a variable accepts a number: a refill rate may have decimals.
fn is_valid(variable: &str, number: &str) -> bool {
    variable.ends_with("PER_SEC") && number == "1.5"
}

/// Asserts that the node does not start with a number in each line of a rule. Returns the number of starts.
fn assert_policies_refused(stage: &Stage, number: &str) -> usize {
    for (begin, end, field) in RULE_LINES {
        let limits = if begin.starts_with("limits") { "" } else { "\n    limits: [1/s]" };
        let rule = format!("{begin}{number}{end}{limits}");
        let policy = format!("version: 1\nrules:\n  - name: a\n    {rule}\n");
        let reply = stage.node().policy(&policy).fails_to_start();
        assert!(reply.contains(":4:") && reply.contains(field), "{rule}: {reply}");
    }
    RULE_LINES.len()
}
