//! Reports of a replay: counts, suggested limits, comparison and page.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tollgate_testkit::random::Random;

use super::{POLICY, START, common, replay_json, three_logins};
use crate::service::{Scratch, run, run_with_input};

#[test]
fn text_report_has_key_rule_and_count_on_one_line() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let log =
        scratch.write("access.log", &three_logins(|second| common(second, "192.0.2.1", "/login")));
    let ended = run(&["replay", "--policy", &policy, &log]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(
        ended.stdout.starts_with("3 requests, 2 allowed, 1 refused (33.34 %)\n"),
        "{}",
        ended.stdout
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = ended.stdout.lines().map(words).collect();
    assert!(
        lines.iter().any(|line| line.starts_with(&["192.0.2.1", "login", "1"].map(str::to_owned))),
        "{}",
        ended.stdout
    );
    assert!(
        lines.iter().any(|line| *line == ["login", "60s", "2/min", "3", "3"]),
        "{}",
        ended.stdout
    );
}

#[test]
fn shadow_rules_do_not_count_as_refused() {
    let policy = POLICY.replace("limits: [2/min]", "limits: [2/min], mode: shadow");
    let log = three_logins(|second| common(second, "a", "/login"));
    let (report, _) = replay_json(&Scratch::new(), &policy, &log, &[]);
    assert_eq!(json!([report["allowed"], report["refused"]]), json!([3, 0]));
    assert_eq!(
        report["rules"][0],
        json!({"rule": "login", "limit_name": "60s", "mode": "shadow", "refused": 1})
    );
    assert_eq!(report["keys"][0]["mode"], "shadow");
}

#[test]
fn comparison_lists_keys_that_only_one_policy_refuses() {
    let scratch = Scratch::new();
    let other = scratch.write(
        "other.yaml",
        "version: 1\nrules: [{ name: api, match: { path: /api }, per: [client], limits: [1/min] }]\n",
    );
    let mut log = three_logins(|second| common(second, "a", "/login"));
    log.push_str(&three_logins(|second| common(second, "b", "/api")));
    let (report, _) = replay_json(&scratch, POLICY, &log, &["--compare", &other]);
    let keys = |field: &str| {
        let keys = report[field].as_array().unwrap().iter();
        keys.map(|key| json!([key["key"], key["rule"], key["refused"]])).collect::<Vec<_>>()
    };
    assert_eq!(keys("newly_refused"), [json!(["b", "api", 2])]);
    assert_eq!(keys("no_longer_refused"), [json!(["a", "login", 1])]);
}

/// Policies with every algorithm, several limits, shadow rules and rules that continue.
const ALGORITHMS: &str = "\
version: 1
rules:
  - { name: all, per: [], limits: [40/s], continue: true }
  - { name: bucket, match: { path: /t }, per: [client], limits: [{ rate: 7/min, burst: 3, algorithm: token_bucket }, 40/h] }
  - { name: window, match: { path: /w }, per: [client], limits: [{ rate: 6/30s, algorithm: sliding_window }] }
  - { name: counter, match: { path: /c }, per: [client], cost: 2, limits: [{ rate: 9/20s, algorithm: sliding_counter }] }
  - { name: fixed, match: { path: /f }, per: [client], limits: [{ rate: 3/10s, algorithm: fixed_window }] }
  - { name: calendar, match: { path: /a }, per: [client], limits: [{ rate: 8/min, algorithm: fixed_window, align: minute }] }
  - { name: slots, match: { path: /n }, per: [client], limits: [{ concurrency: 3, ttl: 20s }] }
  - { name: blocked, match: { path: /b }, limits: [0/s] }
  - { name: quiet, match: { path: /s }, per: [client], limits: [4/min], mode: shadow }
";

#[test]
fn refusals_equal_those_of_simulate_for_every_algorithm() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", ALGORITHMS);
    let mut random = Random::new(21);
    let (mut log, mut lines, mut at) = (String::new(), String::new(), START * 1000);
    for _ in 0..3000 {
        at += random.within(0, 400);
        let path = ["/t", "/w", "/c", "/f", "/a", "/n", "/b", "/s", "/other"]
            [usize::try_from(random.within(0, 8)).unwrap()];
        let client = format!("10.0.0.{}", random.within(1, 3));
        writeln!(log, "{}", json!({"time": at, "ip": client, "method": "GET", "path": path}))
            .unwrap();
        let facts = json!({"client": client, "ip": client, "method": "GET", "path": path});
        writeln!(lines, "{}", json!({"at_ms": at, "facts": facts})).unwrap();
    }
    let simulated = run_with_input(&["simulate", "--policy", &policy], &lines);
    assert_eq!((simulated.code, simulated.stderr.as_str()), (0, ""));
    let mut expected = std::collections::BTreeMap::<(String, String), u64>::new();
    for line in simulated.stdout.lines() {
        let decision: Value = serde_json::from_str(line).unwrap();
        if decision["allowed"] == false {
            let text = |field: &str| decision[field].as_str().unwrap().to_owned();
            *expected.entry((text("rule"), text("limit_name"))).or_default() += 1;
        }
    }
    let (report, _) = replay_json(&scratch, ALGORITHMS, &log, &[]);
    let mut seen = std::collections::BTreeMap::new();
    for row in report["rules"].as_array().unwrap() {
        if row["mode"] == "enforce" && row["refused"] != 0 {
            let text = |field: &str| row[field].as_str().unwrap().to_owned();
            seen.insert((text("rule"), text("limit_name")), row["refused"].as_u64().unwrap());
        }
    }
    assert_eq!(seen, expected);
    let refusing: Vec<&str> = expected.keys().map(|(rule, _)| rule.as_str()).collect();
    for rule in ["bucket", "window", "counter", "fixed", "calendar", "slots", "blocked"] {
        assert!(refusing.contains(&rule), "{rule} refuses nothing: {refusing:?}");
    }
    assert_eq!(report["refused"].as_u64(), Some(expected.values().sum()));
    let shadow =
        report["rules"].as_array().unwrap().iter().find(|row| row["rule"] == "quiet").unwrap();
    assert!(shadow["refused"].as_u64() > Some(0) && shadow["mode"] == "shadow", "{shadow}");
}

/// The count that a replay suggests refuses at most that share, and one less refuses more.
#[test]
fn suggested_limits_are_the_smallest_that_fit() {
    let scratch = Scratch::new();
    let policy = |rate: &str| format!("version: 1\ndefaults: {{ limit: {rate} }}\n");
    for shape in [
        "{ rate: N/min, algorithm: token_bucket }",
        "{ rate: N/min, algorithm: sliding_window }",
        "{ rate: N/10s, algorithm: sliding_counter }",
        "{ rate: N/min, algorithm: fixed_window }",
    ] {
        let mut random = Random::new(5);
        let (mut log, mut at) = (String::new(), START * 1000);
        for _ in 0..2000 {
            at += random.within(0, 7000);
            let client = if random.within(0, 1) == 0 { 0 } else { random.within(1, 40) };
            writeln!(log, "{}", json!({"time": at, "ip": format!("10.0.0.{client}"), "path": "/"}))
                .unwrap();
        }
        let refused = |count: u64| {
            let text = policy(&shape.replace('N', &count.to_string()));
            let (report, _) = replay_json(&scratch, &text, &log, &[]);
            (report["refused"].as_u64().unwrap(), report["suggested"][0].clone())
        };
        let (_, suggested) = refused(17);
        for (field, max) in [("refuses_0_1_percent", 2), ("refuses_1_percent", 20)] {
            let count = suggested[field].as_u64().unwrap();
            assert!(refused(count).0 <= max, "{shape}: {count}");
            assert!(refused(count - 1).0 > max, "{shape}: {count} is not the smallest");
        }
    }
}

#[test]
fn page_escapes_hostile_lines_and_needs_no_network() {
    let scratch = Scratch::new();
    let hostile = "\"><script>alert(1)</script><img/src=x onerror=alert(1)>'&";
    let mut log = String::new();
    for second in 0..4 {
        writeln!(log, "{}", json!({"time": START + second, "ip": hostile, "path": "/login"}))
            .unwrap();
    }
    log.push_str("{\"<svg onload=alert(1)>\n");
    let page = format!("{}/report.html", scratch.path().display());
    let (report, _) = replay_json(&scratch, POLICY, &log, &["--html", &page]);
    assert_eq!(report["refused"], 2);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("&lt;script&gt;alert(1)"), "{html}");
    for forbidden in [
        "<script",
        "<img",
        "<svg onload",
        "http://",
        "https://",
        "src=",
        "href=",
        "url(",
        "@import",
    ] {
        let allowed = html.replace("img/src=x onerror", "");
        assert!(!allowed.contains(forbidden), "{forbidden}: {html}");
    }
    assert!(html.contains("default-src 'none'"), "{html}");
    assert!(html.contains("prefers-color-scheme:dark"), "{html}");
    assert!(html.contains("class=\"curve\"") && html.contains("class=\"refused\""), "{html}");
}

#[test]
fn requests_over_time_count_once_however_many_rules_they_match() {
    let scratch = Scratch::new();
    let policy = POLICY.replace(
        "rules:\n",
        "rules:\n  - { name: all, per: [], limits: [1/min], mode: shadow, continue: true }\n  - { name: more, per: [], limits: [1/min], mode: shadow, continue: true }\n",
    );
    let policy = scratch.write("policy.yaml", &policy);
    let log = scratch.write("access.log", &three_logins(|_| common(0, "a", "/login")));
    let ended = run(&["replay", "--policy", &policy, &log]);
    let (_, over_time) = ended.stdout.split_once("\nOver time\n").expect(&ended.stdout);
    let row: Vec<&str> = over_time.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["2026-10-10T11:55:36Z", "3", "1", "33.34", "%", "2"], "{}", ended.stdout);
}
