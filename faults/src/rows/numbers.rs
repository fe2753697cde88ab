//! Numbers that are none, and those beyond any that is meant.

use std::fs;

use crate::endpoints::assert_refused;
use crate::node::Node;
use crate::stage::Stage;

/// As they stand in JSON, in YAML, in the environment.
const NONSENSE: [&str; 10] = [
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

/// The first number that some readers of JSON take for its neighbour.
const TOO_GREAT: &str = "9007199254740992";

/// The greatest number that is taken.
const GREATEST: &str = "9007199254740991";

/// Fields of a question that are numbers: the question around the number, and what the field is called.
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

/// Settings that are numbers, by their flag.
const SETTINGS: [&str; 9] = [
    "redis-timeout-ms",
    "heartbeat-ms",
    "node-lifetime-ms",
    "breaker-failures",
    "breaker-open-ms",
    "probe-ms",
    "max-keys",
    "max-connections",
    "drain-ms",
];

const VARIABLES: [&str; 2] = ["RATE_LIMIT_GLOBAL_CAPACITY", "RATE_LIMIT_GLOBAL_REFILL_PER_SEC"];

/// Lines of a rule in which a number is meant, and what is named where it is none.
const LINES: [(&str, &str, &str); 6] = [
    ("limits: [", "/min]", "rules[0].limits[0]"),
    ("limits: [{ rate: ", "/min }]", "rules[0].limits[0]"),
    ("limits: [1/", "s]", "rules[0].limits[0]"),
    ("limits: [{ rate: 1/min, algorithm: token_bucket, burst: ", " }]", "rules[0].limits[0].burst"),
    ("limits: [{ concurrency: ", " }]", "rules[0].limits[0].concurrency"),
    ("cost: ", "", "rules[0].cost"),
];

pub(super) fn invalid_numbers_are_refused_naming_the_field(stage: &Stage) -> String {
    let node = stage.node().start();
    let requests = assert_requests_refused(&node);
    // All of them cost a start each: some are enough before each change.
    let numbers = stage.scale().pick(&NONSENSE[4..8], &NONSENSE[..]);
    let mut starts = 0;
    for number in numbers {
        starts += assert_settings_refused(stage, number) + assert_policies_refused(stage, number);
    }
    let documented = include_str!("../../../docs/POLICY.md");
    assert!(documented.contains("2^53 − 1"), "the greatest number is documented");
    format!(
        "{requests} questions refused on five paths, the field named; {starts} starts refused, setting or line \
         named, exit code 2; {GREATEST} (2^53 - 1) is the greatest that is taken"
    )
}

/// Asks with each in each field; how many questions.
fn assert_requests_refused(node: &Node) -> usize {
    let mut client = node.client();
    let mut count = 0;
    for (begin, end, field) in FIELDS {
        for number in NONSENSE.into_iter().chain([TOO_GREAT]) {
            // As a word too: a text is no number.
            let text = format!("\"{number}\"");
            for number in [number, &text] {
                let question = format!("{begin}{number}{end}");
                // What is no JSON spoils a whole batch, as which it has no items.
                if number.starts_with(|first: char| first.is_ascii_uppercase()) {
                    let reply = client.post("/check", &question).expect("the node responds");
                    assert_eq!((reply.status, &reply.json()["field"]), (400, &field.into()));
                } else {
                    assert_refused(&mut client, &question, 400, field);
                }
                count += 1;
            }
        }
    }
    let greatest = format!(r#"{{"key":"k","cost":{GREATEST}}}"#);
    let reply = client.post("/check", greatest).expect("the node responds");
    assert_eq!((reply.status, &reply.json()["verdict"]), (200, &"never".into()), "{}", reply.body);
    let peeked = node.count(r#"{"key":"k"}"#);
    assert_eq!(peeked, Some(0), "nothing was taken");
    count
}

/// Starts with it as each setting, and then in a file of settings; how many starts.
fn assert_settings_refused(stage: &Stage, number: &str) -> usize {
    for setting in SETTINGS {
        let reply = stage.node().with(setting, number).fails_to_start();
        assert!(reply.contains(&format!("--{setting}")), "{setting}={number}: {reply}");
        let name = setting.replace('-', "_");
        let file = stage.scratch().write("settings.yaml", format!("{name}: {number}\n"));
        let reply = stage.node().with("config", &file).fails_to_start();
        let is_named = reply.contains(&format!("--{setting}")) || reply.contains(&name);
        assert!(is_named, "{name}: {number}: {reply}");
        fs::remove_file(file).expect("it was written");
    }
    let variables = VARIABLES.iter().filter(|name| !is_taken(name, number));
    for name in variables.clone() {
        let reply = stage.node().variable(name, number).fails_to_start();
        assert!(reply.contains(name), "{name}={number}: {reply}");
    }
    2 * SETTINGS.len() + variables.count()
}

/// A refill may have decimals.
fn is_taken(variable: &str, number: &str) -> bool {
    variable.ends_with("PER_SEC") && number == "1.5"
}

/// Starts with it in each line of a policy; how many starts.
fn assert_policies_refused(stage: &Stage, number: &str) -> usize {
    for (begin, end, field) in LINES {
        let limits = if begin.starts_with("limits") { "" } else { "\n    limits: [1/s]" };
        let rule = format!("{begin}{number}{end}{limits}");
        let policy = format!("version: 1\nrules:\n  - name: a\n    {rule}\n");
        let reply = stage.node().policy(&policy).fails_to_start();
        assert!(reply.contains(":4:") && reply.contains(field), "{rule}: {reply}");
    }
    LINES.len()
}
