//! `tollgate policy suggest`.

use std::fmt::Write as _;

use serde_json::json;
use tollgate_testkit::random::Random;

use super::{START, replay_json};
use crate::service::{Scratch, run, run_with_input};

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

#[test]
fn suggested_names_are_texts_and_every_route_has_requests() {
    let scratch = Scratch::new();
    let mut log = String::new();
    for number in 0..100 {
        for path in ["/null", "/true", "/.inf", "/api/", "/api", "/users/me", "/users/7"] {
            let line = json!({"time": START + number, "ip": "10.0.0.1", "path": path});
            writeln!(log, "{line}").unwrap();
        }
    }
    let file = scratch.write("access.log", &log);
    let suggested = run(&["policy", "suggest", &file]);
    assert_eq!((suggested.code, suggested.stderr.as_str()), (0, ""));
    let (report, _) = replay_json(&scratch, &suggested.stdout, &log, &[]);
    let rules: Vec<(&str, u64)> = report["suggested"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| (rule["rule"].as_str().unwrap(), rule["requests"].as_u64().unwrap()))
        .collect();
    for rule in [
        ("null", 100),
        ("true", 100),
        (".inf", 100),
        ("api", 200),
        ("users-me", 100),
        ("users-id", 100),
    ] {
        assert!(rules.contains(&rule), "{rule:?}: {rules:?}");
    }
    let help = run(&["policy", "suggest", "--help"]);
    assert!(!help.stdout.contains("- is standard input"), "{}", help.stdout);
}
