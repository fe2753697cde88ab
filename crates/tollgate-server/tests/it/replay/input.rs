//! Logs that a replay reads: formats, facts, order, and lines that it skips.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{POLICY, START, common, replay_json, three_logins};
use crate::service::{Scratch, run, run_with_input};

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
    let (_, ended) =
        replay_json(&Scratch::new(), policy, &log.replace("x_client_id", "other"), &[]);
    let note = "uses the fact `header:x-client-id`, which the log does not contain; name its JSON field with --field header:x-client-id=NAME";
    assert!(ended.stderr.contains(note), "{}", ended.stderr);
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
    let failure: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (ended.code, &failure["error"]["exit_code"]),
        (2, &json!(2)),
        "no report: {failure}"
    );
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
    assert!(stderr.contains("access.log:7: the path is longer than 1024 bytes"), "{stderr}");
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
fn secret_headers_are_reported_as_digests() {
    let scratch = Scratch::new();
    let log: String = (0..2)
        .map(|second| {
            let line = json!({"time": START + second, "ip": "10.0.0.1", "path": "/", "http_authorization": "Bearer s3cret",
                "http_cookie": "session=s3cret"});
            format!("{line}\n")
        })
        .collect();
    let page = format!("{}/report.html", scratch.path().display());
    let policies = [
        "rules: [{ name: r, per: [\"header:authorization\"], limits: [1/min] }]",
        "rules: [{ name: r, per: [\"header:cookie\"], limits: [1/min] }]",
        "facts: { user: [{ header: authorization, digest: true }] }\nrules: [{ name: r, per: [\"header:authorization\"], limits: [1/min] }]",
        "facts: { user: [{ header: authorization, digest: true }] }\nrules: [{ name: r, per: [user], limits: [1/min] }]",
    ];
    let mut keys = Vec::new();
    for policy in policies {
        let policy = format!("version: 1\n{policy}\n");
        let (report, ended) = replay_json(&scratch, &policy, &log, &["--html", &page]);
        let file = |name: &str| format!("{}/{name}", scratch.path().display());
        let text = run(&["replay", "--policy", &file("policy.yaml"), &file("access.log")]);
        let html = std::fs::read_to_string(&page).unwrap();
        for output in [&ended.stdout, &text.stdout, &html] {
            assert!(output.contains("sha256:"), "{policy}: {output}");
            assert!(!output.contains("s3cret"), "{policy}: {output}");
        }
        keys.push(report["keys"][0]["key"].clone());
    }
    assert_ne!(keys[0], keys[1]);
    assert!(keys[2] == keys[0] && keys[3] == keys[0], "digests of the raw value: {keys:?}");
}

#[test]
fn page_never_overwrites_an_input() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let other = scratch.write("other.yaml", "version: 1\n");
    let log = scratch.write("access.log", &common(0, "a", "/"));
    let alias = format!("{}/./access.log", scratch.path().display());
    let link = format!("{}/link.log", scratch.path().display());
    std::fs::hard_link(&log, &link).unwrap();
    let read = |file: &str| std::fs::read_to_string(file).unwrap();
    let before = [&policy, &other, &log].map(|file| read(file));
    for page in [&policy, &other, &log, &alias, &link] {
        let ended =
            run(&["replay", "--policy", &policy, "--compare", &other, "--html", page, &log]);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{page}");
        assert!(ended.stderr.contains("the page would overwrite the input"), "{}", ended.stderr);
    }
    assert_eq!([&policy, &other, &log].map(|file| read(file)), before);
    let ended = run(&["replay", "--policy", &policy, "--html", "-", &log]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("name a file"), "{}", ended.stderr);
    assert!(!std::path::Path::new("-").exists());
}

/// The report is not lost with the page.
#[cfg(target_os = "linux")]
#[test]
fn report_is_printed_if_the_page_cannot_be_written() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let log = scratch.write("access.log", &common(0, "a", "/"));
    let ended = run(&["replay", "--policy", &policy, "--html", "/dev/full", &log]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("/dev/full: cannot write the page"), "{}", ended.stderr);
    assert!(ended.stdout.contains("1 allowed, 0 refused"), "{}", ended.stdout);
}

#[test]
fn paths_are_normalized_as_in_forward_auth() {
    let policy =
        "version: 1\nrules: [{ name: api, match: { path: /api/** }, per: [], limits: [1/h] }]\n";
    let paths = ["/api/a", "/%61pi/b", "//api/c", "/api/./d", "/x/../api/e?q", "http://h/api/g"];
    let mut log: String =
        (0..).zip(paths).map(|(second, path)| format!("{}\n", common(second, "a", path))).collect();
    writeln!(log, "{}", common(9, "a", "/api/%zz")).unwrap();
    writeln!(log, "{}", json!({"time": START + 9, "ip": "a", "path": "api"})).unwrap();
    let (report, ended) = replay_json(&Scratch::new(), policy, &log, &[]);
    let figures = json!([report["requests"], report["refused"], report["skipped_lines"]]);
    assert_eq!(figures, json!([6, 5, 2]), "{}", ended.stderr);
    assert!(ended.stderr.contains("access.log:7: the path is invalid"), "{}", ended.stderr);
}

/// Scanners and time-outs leave lines whose request is no HTTP request.
#[test]
fn malformed_requests_at_the_start_do_not_hide_the_format() {
    let access = [r#""\x16\x03\x01" 400 157"#, r#""-" 408 0 "-" "-""#]
        .map(|request| common(0, "a", "/").replace("\"GET / HTTP/1.1\" 200 12", request));
    let nginx = [
        json!({"time": START, "remote_addr": "a", "request": "", "status": 408}).to_string(),
        json!({"time": START, "remote_addr": "a", "request": "GET %zz HTTP/1.1"}).to_string(),
    ];
    let login = json!({"time": START, "remote_addr": "a", "request": "GET /login HTTP/1.1"});
    let logins = [common(0, "a", "/login"), login.to_string()];
    for (malformed, login) in [access, nginx].into_iter().zip(logins) {
        let log =
            format!("{}\n", malformed.join("\n")).repeat(10) + &three_logins(|_| login.clone());
        let (report, ended) = replay_json(&Scratch::new(), POLICY, &log, &[]);
        let figures = json!([report["requests"], report["refused"], report["skipped_lines"]]);
        assert_eq!(figures, json!([3, 1, 20]), "{}", ended.stderr);
    }
}

#[test]
fn byte_order_mark_is_no_part_of_the_first_line() {
    for line in
        [common(0, "a", "/login"), json!({"time": START, "ip": "a", "path": "/login"}).to_string()]
    {
        let (report, ended) =
            replay_json(&Scratch::new(), POLICY, &format!("\u{feff}{line}\n"), &[]);
        assert_eq!(json!([report["requests"], report["skipped_lines"]]), json!([1, 0]));
        assert_eq!(ended.stderr, "");
    }
}

const BYTES: &str = "\
version: 1
rules: [{ name: files, limits: [1000/min, { rate: 100/min, unit: bytes, name: bytes }] }]
";

fn refused_by_bytes(log: &str, fields: &[&str]) -> Value {
    let (report, _) = replay_json(&Scratch::new(), BYTES, log, fields);
    let rules = report["rules"].as_array().unwrap();
    let of_bytes = rules.iter().find(|rule| rule["limit_name"] == "bytes").unwrap();
    of_bytes["refused"].clone()
}

#[test]
fn costs_by_unit_are_read_from_fields() {
    let size = ["--cost-field", "bytes=size"];
    let logs: String =
        (0..20).map(|second| format!("{}\n", common(second, "192.0.2.1", "/a"))).collect();
    assert_eq!(refused_by_bytes(&logs, &[]), 0, "0 bytes");
    assert_eq!(refused_by_bytes(&logs, &size), 12, "12 bytes each");
    assert_eq!(refused_by_bytes(&logs.replace(" 12\n", " -\n"), &size), 0);
    let line = |second: u64, sent: &str| {
        let at = START + second;
        format!(r#"{{"time":{at},"ip":"192.0.2.1","path":"/a","sent":{sent}}}"#)
    };
    let sent = ["--cost-field", "bytes=sent"];
    let json = |sent: &str| format!("{}\n{}\n", line(0, sent), line(1, sent));
    assert_eq!(refused_by_bytes(&json("60"), &sent), 1);
    assert_eq!(refused_by_bytes(&json("\"60\""), &sent), 1, "a text, as nginx writes it");
    assert_eq!(refused_by_bytes(&json("null"), &sent), 0);
    let (report, ended) =
        replay_json(&Scratch::new(), BYTES, &(json("60") + &line(2, "-1")), &sent);
    assert_eq!((&report["requests"], &report["skipped_lines"]), (&json!(2), &json!(1)));
    assert!(ended.stderr.contains("a cost is not an integer from 0 to"), "{}", ended.stderr);
    let suggested = report["suggested"].as_array().unwrap();
    let of_bytes = suggested.iter().find(|limit| limit["limit_name"] == "bytes").unwrap();
    assert_eq!(of_bytes["unit"], "bytes");
    let smallest = of_bytes["refuses_1_percent"].as_u64().unwrap();
    assert!((120..=125).contains(&smallest), "two requests of 60 bytes: {smallest}");
}

#[test]
fn cost_fields_that_cannot_be_read_have_clear_messages() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", BYTES);
    let log = scratch.write("access.log", &common(0, "192.0.2.1", "/a"));
    for (fields, error) in [
        (
            &["bytes=sent"][..],
            "the only cost in an access log is the response size; use --cost-field UNIT=size",
        ),
        (&["bytes=size", "bytes=size"], "--cost-field names the unit bytes twice"),
        (&["bytes"], "must be UNIT=FIELD, such as bytes=body_bytes_sent"),
        (&["a b=size"], "invalid unit"),
    ] {
        let fields = fields.iter().flat_map(|field| ["--cost-field", field]);
        let args: Vec<&str> =
            ["replay", "--policy", &policy, &log].into_iter().chain(fields).collect();
        let ended = run(&args);
        assert!(ended.code == 2 && ended.stderr.contains(error), "{error}: {}", ended.stderr);
    }
}

#[test]
fn negative_times_and_fields_of_access_logs_have_clear_messages() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let negative = scratch.write("negative.jsonl", "{\"time\":-5,\"ip\":\"a\",\"path\":\"/\"}\n");
    let ended = run(&["replay", "--policy", &policy, &negative]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("is not a valid time"), "{}", ended.stderr);
    let log = scratch.write("access.log", &common(0, "a", "/"));
    let ended = run(&["replay", "--policy", &policy, "--field", "user=account", &log]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(
        ended.stderr.contains("access.log: --field names the fields of JSON logs"),
        "{}",
        ended.stderr
    );
}

#[test]
fn twenty_facts_are_read_and_too_many_are_an_error() {
    let policy = |count: usize| {
        let rules: String = (0..count)
            .map(|number| format!("  - {{ name: r{number}, per: [f{number}], missing: skip, limits: [1/min], continue: true, mode: shadow }}\n"))
            .collect();
        format!("version: 1\nrules:\n{rules}")
    };
    let scratch = Scratch::new();
    let line = json!({"time": START, "ip": "a", "path": "/", "f11": "x", "f12": "y", "f19": "z"});
    let log = format!("{line}\n{line}\n");
    let text = policy(20).replace("continue: true, mode: shadow", "continue: true");
    let (report, _) = replay_json(&scratch, &text, &log, &[]);
    assert_eq!(report["refused"], 1);
    let rows = report["suggested"].as_array().unwrap();
    for (rule, requests) in [("r11", 2), ("r12", 2), ("r19", 2), ("r5", 0)] {
        let row = rows.iter().find(|row| row["rule"] == rule).unwrap();
        assert_eq!(row["requests"], requests, "{row}");
    }
    let policy = scratch.write("many.yaml", &policy(29));
    let log = scratch.write("access.log", &log);
    let ended = run(&["replay", "--policy", &policy, &log]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("a replay supports at most 32"), "{}", ended.stderr);
}

#[test]
fn one_request_is_singular() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let log = scratch.write("access.log", &common(0, "a", "/"));
    let ended = run(&["replay", "--policy", &policy, &log]);
    assert!(ended.stdout.starts_with("1 request, 1 allowed, 0 refused"), "{}", ended.stdout);
}
