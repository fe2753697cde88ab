//! `tollgate replay` through the real binary.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tollgate_testkit::random::Random;

use crate::service::{Ended, Scratch, run, run_with_input};

const START: u64 = 1_791_633_336;

const POLICY: &str = "\
version: 1
rules:
  - { name: login, match: { path: /login }, per: [client], limits: [2/min] }
defaults: { limit: 1000/min }
";

/// Returns a line of the common format at this number of seconds after the start.
fn common(seconds: u64, ip: &str, path: &str) -> String {
    let time = jiff::Timestamp::from_second(i64::try_from(START + seconds).unwrap()).unwrap();
    let months =
        ["", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = time.to_string();
    let (date, clock) = text.trim_end_matches('Z').split_once('T').unwrap();
    let parts: Vec<&str> = date.split('-').collect();
    let month = months[parts[1].parse::<usize>().unwrap()];
    format!(
        "{ip} - - [{}/{month}/{}:{clock} +0000] \"GET {path} HTTP/1.1\" 200 12",
        parts[2], parts[0]
    )
}

fn replay_json(scratch: &Scratch, policy: &str, log: &str, more: &[&str]) -> (Value, Ended) {
    let policy = scratch.write("policy.yaml", policy);
    let log = scratch.write("access.log", log);
    let ended = run(&[&["replay", "--json", "--policy", &policy, &log], more].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

/// Three logins of one client within a minute: the third is refused.
fn three_logins(line: impl Fn(u64) -> String) -> String {
    (0..3).map(|second| format!("{}\n", line(second))).collect()
}

#[test]
fn all_formats_have_the_same_result() {
    let time = |second: u64| {
        jiff::Timestamp::from_second(i64::try_from(START + second).unwrap()).unwrap().to_string()
    };
    let formats = [
        three_logins(|second| common(second, "203.0.113.7", "/login?next=/")),
        three_logins(|second| {
            format!("{} \"-\" \"curl/8 (\\\"x\\\")\"", common(second, "203.0.113.7", "/login"))
        }),
        three_logins(|second| {
            format!(
                "{} \"-\" \"curl\" \"203.0.113.7, 10.0.0.2\"",
                common(second, "10.0.0.1", "/login")
            )
        }),
        three_logins(|second| {
            json!({"time_iso8601": time(second), "remote_addr": "203.0.113.7", "request": "GET /login?x=1 HTTP/1.1", "status": 200})
                .to_string()
        }),
        three_logins(|second| {
            json!({"msec": format!("{}.250", START + second), "remote_addr": "10.0.0.1", "request_method": "GET",
                "request_uri": "/login", "http_x_forwarded_for": "203.0.113.7", "nested": {"a": [1, {}]}})
                .to_string()
        }),
        three_logins(|second| {
            json!({"time": time(second), "ip": "203.0.113.7", "method": "GET", "path": "/login"})
                .to_string()
        }),
        three_logins(|second| {
            json!({"time": START + second, "ip": "203.0.113.7", "path": "/login"}).to_string()
        }),
    ];
    for log in formats {
        let (report, _) = replay_json(&Scratch::new(), POLICY, &log, &[]);
        let figures = json!([
            report["requests"],
            report["allowed"],
            report["refused"],
            report["skipped_lines"]
        ]);
        assert_eq!(figures, json!([3, 2, 1, 0]), "{log}");
        let key = &report["keys"][0];
        assert_eq!(
            json!([key["key"], key["rule"], key["refused"]]),
            json!(["203.0.113.7", "login", 1]),
            "{log}"
        );
        assert!(key["first"].as_str().unwrap().starts_with("2026-10-10T11:55:38"), "{key}");
        assert_eq!(key["first"], key["last"]);
        assert_eq!(
            report["rules"][0],
            json!({"rule": "login", "limit_name": "60s", "mode": "enforce", "refused": 1})
        );
    }
}

#[test]
fn fields_can_be_renamed_and_add_facts() {
    let policy = "version: 1\nrules: [{ name: users, per: [user], limits: [1/min] }]\n";
    let log: String = ["a", "a", "b"]
        .iter()
        .map(|user| {
            format!("{}\n", json!({"ts2": START, "from": "10.0.0.1", "path": "/", "account": user}))
        })
        .collect();
    let fields = ["--field", "time=ts2", "--field", "ip=from", "--field", "user=account"];
    let (report, ended) = replay_json(&Scratch::new(), policy, &log, &fields);
    assert_eq!((report["refused"].as_u64(), &report["keys"][0]["key"]), (Some(1), &json!("a")));
    assert_eq!(ended.stderr, "");
    let log = log.replace("account", "other");
    let (_, ended) = replay_json(&Scratch::new(), policy, &log, &fields[..4]);
    assert!(
        ended.stderr.contains("uses the fact `user`, which the log does not contain"),
        "{}",
        ended.stderr
    );
}

#[test]
fn facts_of_the_policy_define_the_client() {
    let policy = "\
version: 1
facts: { client: [{ header: x-client-id }, ip] }
rules: [{ name: clients, per: [client], limits: [1/min] }]
";
    let log: String = [Some("c1"), Some("c1"), None, None]
        .iter()
        .zip(0..)
        .map(|(id, second)| {
            let ip = format!("10.0.0.{}", second % 2 + 1);
            let line =
                json!({"time": START + second, "ip": ip, "path": "/", "http_x_client_id": id});
            format!("{line}\n")
        })
        .collect();
    let (report, ended) = replay_json(&Scratch::new(), policy, &log, &[]);
    assert_eq!((report["refused"].as_u64(), &report["keys"][0]["key"]), (Some(1), &json!("c1")));
    assert_eq!(ended.stderr, "");
}

#[test]
fn several_logs_are_merged_by_time_and_disorder_is_sorted() {
    let scratch = Scratch::new();
    let policy = scratch
        .write("policy.yaml", "version: 1\ndefaults: { limit: 1/min, algorithm: fixed_window }\n");
    // In order: allowed at 0, refused at 30, allowed at 60, refused at 90.
    let one =
        scratch.write("one.log", &format!("{}\n{}\n", common(60, "a", "/"), common(0, "a", "/")));
    let two =
        scratch.write("two.log", &format!("{}\n{}\n", common(30, "a", "/"), common(90, "a", "/")));
    let ended = run(&["replay", "--json", "--policy", &policy, &one, &two]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &report["allowed"], &report["refused"]), (0, &json!(2), &json!(2)));
    assert_eq!(report["keys"][0]["first"], "2026-10-10T11:56:06Z");
    assert_eq!(report["keys"][0]["last"], "2026-10-10T11:57:06Z");
}

#[test]
fn clock_that_goes_back_too_far_skips_the_lines_with_a_message() {
    let log = format!(
        "{}\n{}\n{}\n",
        common(900, "a", "/"),
        common(600, "a", "/"),
        common(599, "b", "/")
    );
    let (report, ended) = replay_json(&Scratch::new(), POLICY, &log, &[]);
    assert_eq!(json!([report["requests"], report["skipped_lines"]]), json!([2, 1]));
    assert!(
        ended.stderr.contains("1 line skipped, because the time is more than 5 minutes before"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("access.log:3"), "{}", ended.stderr);
}

#[test]
fn gzip_and_standard_input_are_read() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let log = three_logins(|second| common(second, "a", "/login"));
    let piped = run_with_input(&["replay", "--json", "--policy", &policy, "-"], &log);
    let report: Value = serde_json::from_str(&piped.stdout).unwrap();
    assert_eq!((piped.code, &report["refused"]), (0, &json!(1)));
    let many: String =
        (0..5000).map(|second| format!("{}\n", common(second, "a", "/login"))).collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(many.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let path = scratch.path().join("access.log.gz");
    std::fs::write(&path, &gzip).unwrap();
    let path = path.to_str().unwrap();
    let ended = run(&["replay", "--json", "--policy", &policy, path]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &report["requests"]), (0, &json!(5000)));
    std::fs::write(path, &gzip[..gzip.len() / 2]).unwrap();
    let ended = run(&["replay", "--json", "--policy", &policy, path]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("the gzip file is truncated after line"), "{}", ended.stderr);
}

#[test]
fn malformed_and_huge_lines_are_counted_and_the_first_three_shown() {
    let mut log = three_logins(|second| common(second, "a", "/login"));
    log.push_str("garbage \u{1b}[31m red\n\n");
    writeln!(log, "{}", common(4, "a", &"/x".repeat(600_000))).unwrap();
    writeln!(log, "{}", common(4, "a", &"/y".repeat(1000))).unwrap();
    log.push_str("10.0.0.1 - - [never] \"GET / HTTP/1.1\" 200 1\n{\"time\":1}\n");
    let (report, ended) = replay_json(&Scratch::new(), POLICY, &log, &[]);
    assert_eq!(json!([report["requests"], report["skipped_lines"]]), json!([3, 5]));
    let stderr = &ended.stderr;
    assert!(stderr.contains("5 malformed lines skipped; the first:"), "{stderr}");
    assert!(
        stderr.contains("access.log:4:")
            && stderr.contains("\\u{1b}[31m")
            && !stderr.contains('\u{1b}'),
        "{stderr}"
    );
    assert!(stderr.contains("access.log:6: the line is longer than 65536 bytes"), "{stderr}");
    assert!(stderr.contains("access.log:7: a value is longer than 1024 bytes"), "{stderr}");
    assert_eq!(stderr.lines().count(), 4, "{stderr}");
    assert!(stderr.len() < 2000, "{}", stderr.len());
}

#[test]
fn unusable_input_exits_with_two_and_empty_logs_with_zero() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let log = scratch.write("access.log", &common(0, "a", "/"));
    let text = scratch.write("notes.txt", "one\ntwo\n");
    let json = scratch.write("fields.jsonl", "{\"when\":1}\n");
    let broken = scratch.write("broken.yaml", "version: 7\n");
    let missing = format!("{}/missing.log", scratch.path().display());
    for (args, message) in [
        (vec!["--policy", &policy, &missing], "missing.log: cannot read the log"),
        (
            vec!["--policy", &policy, &text],
            "notes.txt: unknown log format; supported: common, combined",
        ),
        (
            vec!["--policy", &policy, &json],
            "the field `time` is missing; name it with --field time=NAME",
        ),
        (vec!["--policy", &broken, &log], "broken.yaml"),
        (vec!["--policy", &policy, "--compare", &broken, &log], "broken.yaml"),
        (vec!["--policy", &policy, "--field", "time", &log], "NAME=FIELD"),
        (
            vec!["--policy", &policy, "--html", "/nonexistent/page.html", &log],
            "cannot write the page",
        ),
    ] {
        let ended = run(&[&["replay"], &args[..]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ended.stderr.contains(message), "{args:?}: {}", ended.stderr);
    }
    let empty = scratch.write("empty.log", "");
    let ended = run(&["replay", "--policy", &policy, &empty]);
    assert_eq!(ended.code, 0);
    assert_eq!(ended.stderr, "tollgate: the log is empty\n");
    assert!(
        ended.stdout.starts_with("0 requests, 0 allowed, 0 refused (0.00 %)\n"),
        "{}",
        ended.stdout
    );
}

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
fn suggested_policy_refuses_at_most_one_percent_of_each_rule() {
    let scratch = Scratch::new();
    for seed in 0..2 {
        let mut random = Random::new(seed);
        let (mut log, mut at) = (String::new(), START * 1000);
        for number in 0..6000 {
            at += random.within(0, 60);
            let most = random.within(0, 200);
            let client = random.within(0, most);
            let burst = number % 1000 < 100 && seed == 1;
            let client = if burst { 7 } else { client };
            let path = match random.within(0, 9) {
                0 => "/login".to_owned(),
                1..=4 => format!("/api/orders/{}", random.within(0, 99)),
                5 | 6 => format!("/api/users/{}/profile", random.within(0, 99)),
                7 => format!("/{}.html", random.within(0, 99)),
                8 => "/search?q=1".to_owned(),
                _ => "/".to_owned(),
            };
            writeln!(
                log,
                "{}",
                json!({"time": at, "ip": format!("10.0.0.{client}"), "path": path})
            )
            .unwrap();
        }
        let file = scratch.write("access.log", &log);
        let suggested = run(&["policy", "suggest", &file]);
        assert_eq!((suggested.code, suggested.stderr.as_str()), (0, ""));
        assert!(
            suggested.stdout.contains("# Busiest minute of a client: median "),
            "{}",
            suggested.stdout
        );
        assert!(!suggested.stdout.contains("mode: enforce\n"), "{}", suggested.stdout);
        let (report, _) = replay_json(&scratch, &suggested.stdout, &log, &[]);
        assert_eq!(report["refused"], 0, "shadow mode");
        let enforced = suggested.stdout.replace("mode: shadow\n", "mode: enforce\n");
        let (report, _) = replay_json(&scratch, &enforced, &log, &[]);
        let mut rules = 0;
        for (row, suggestion) in
            report["rules"].as_array().unwrap().iter().zip(report["suggested"].as_array().unwrap())
        {
            assert_eq!(row["rule"], suggestion["rule"]);
            let (refused, requests) =
                (row["refused"].as_u64().unwrap(), suggestion["requests"].as_u64().unwrap());
            assert!(refused * 100 <= requests, "{row}: {requests}");
            rules += u64::from(requests > 0 && row["rule"] != "default");
        }
        assert!(rules >= 5, "{}", suggested.stdout);
    }
    let policy = run_with_input(&["policy", "suggest", "-"], "");
    assert_eq!(policy.code, 2);
    assert!(policy.stderr.contains("reads the logs several times"), "{}", policy.stderr);
}
