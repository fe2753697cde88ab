//! `POST /explain`: predicts what `/check` does and consumes nothing.

use serde_json::{Value, json};
use tollgate_testkit::random::Random;

use crate::client::Client;
use crate::service::{Scratch, Service};

/// Windows of hours, so that no state changes with time between two requests.
const POLICY: &str = "\
version: 1
defaults: { limit: 40/12h, algorithm: fixed_window }
rules:
  - { name: jobs, match: { tier: internal }, unlimited: true }
  - { name: banned, match: { ip: 192.0.2.0/24 }, limits: [0] }
  - name: everyone
    per: []
    limits: [2000/48h]
    algorithm: fixed_window
    continue: true
  - name: watched
    match: { method: POST }
    per: [client]
    limits: [{ rate: 9/6h, name: few }, { rate: 30/48h, name: more }]
    algorithm: sliding_window
    mode: shadow
    continue: true
  - { name: login, match: { path: /login }, per: [ip], limits: [20/6h], missing: deny }
  - name: search
    match: { path: /search/** }
    per: [user]
    limits: [{ rate: 1/h, burst: 15, algorithm: token_bucket }, 60/24h]
    missing: skip
    next: { limits: [{ rate: 6/h, name: tight }, { rate: 1/h, burst: 8, algorithm: token_bucket }] }
  - { name: shared, match: { path: /shared }, per: [user], limits: [25/8h], missing: share }
";

fn with_policy(text: &str) -> (Scratch, Service) {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", text);
    let service = Service::start(&["--policy", &path]);
    (scratch, service)
}

/// Returns a random request, by policy or with inline limits.
fn random_query(random: &mut Random) -> Value {
    let cost = match random.within(0, 9) {
        0 => 0,
        1 => random.magnitude(40),
        _ => random.magnitude(6),
    };
    if random.one_in(4) {
        let limits = inline_limits(random);
        return json!({"key": one_of(random, &["a", "b"]), "cost": cost, "limits": limits});
    }
    let mut facts = serde_json::Map::new();
    let paths = ["/login", "/search/books", "/search/a/b?q", "/shared", "/other"];
    facts.insert("path".to_owned(), one_of(random, &paths));
    for (name, values, one_in) in [
        ("client", &["c1", "c2"][..], 2),
        ("user", &["u1", "u2", "ü/3"], 2),
        ("ip", &["198.51.100.7", "198.51.100.8", "192.0.2.1"], 3),
        ("method", &["GET", "post", "POST"], 2),
        ("tier", &["internal", "free"], 8),
        ("tenant", &["t1"], 6),
    ] {
        if random.one_in(one_in) {
            facts.insert(name.to_owned(), one_of(random, values));
        }
    }
    json!({"facts": facts, "cost": cost})
}

fn one_of(random: &mut Random, values: &[&str]) -> Value {
    json!(random.pick(values))
}

fn inline_limits(random: &mut Random) -> Vec<Value> {
    const DAY: u64 = 86_400_000;
    let all = [
        json!({"name": "tb", "algorithm": "token_bucket", "limit": 1, "window_ms": 3_600_000, "burst": 50}),
        json!({"name": "sw", "algorithm": "sliding_window", "limit": 40, "window_ms": DAY}),
        json!({"name": "fw", "algorithm": "fixed_window", "limit": 30, "window_ms": DAY}),
        json!({"name": "cc", "algorithm": "concurrency", "limit": 60, "ttl_ms": DAY}),
        json!({"name": "no", "limit": 0}),
    ];
    let chosen = all.iter().take(4).filter(|_| random.one_in(2)).cloned().collect::<Vec<_>>();
    match (chosen.is_empty(), random.one_in(20)) {
        (true, true) => vec![all[4].clone()],
        (true, false) => vec![all[1].clone()],
        (false, _) => chosen,
    }
}

/// Returns the parts of an explanation that do not depend on the time.
fn time_independent(explanation: &Value) -> Value {
    let mut takes = explanation["takes"].clone();
    for take in takes.as_array_mut().unwrap() {
        take["retry_after_ms"].take();
    }
    let answer = &explanation["answer"];
    json!([takes, answer["verdict"], answer["rule"], answer["key"], explanation["rules"]])
}

fn post(client: &mut Client, path: &str, body: &Value) -> Value {
    let reply = client.post(path, body.to_string());
    assert_eq!(reply.status, 200, "{path} {body}: {}", reply.body);
    reply.json()
}

#[test]
fn explanation_predicts_the_decision() {
    let (_scratch, service) = with_policy(POLICY);
    let mut client = service.client();
    let (mut random, mut seen) = (Random::new(7), std::collections::BTreeMap::new());
    for number in 0..300 {
        let body = random_query(&mut random);
        let explained = post(&mut client, "/explain", &body);
        let repeated = post(&mut client, "/explain", &body);
        assert_eq!(
            time_independent(&explained),
            time_independent(&repeated),
            "{number}: explain changed the state: {body}"
        );
        let decided = post(&mut client, "/check", &body);
        let context = format!("{number}: {body}\nexplained {explained}\ndecided {decided}");
        for field in ["verdict", "allowed", "rule", "limit_name", "key", "limit", "source"] {
            assert_eq!(explained["answer"][field], decided[field], "{field} of {context}");
        }
        let (takes, limits) =
            (explained["takes"].as_array().unwrap(), decided["limits"].as_array().unwrap());
        assert_eq!(takes.len(), limits.len(), "{context}");
        for (take, limit) in takes.iter().zip(limits) {
            assert_eq!(
                (&take["rule"], &take["limit"]),
                (&limit["rule"], &limit["name"]),
                "{context}"
            );
            assert_eq!(take["after"]["count"], limit["count"], "{context}");
            assert_eq!(take["after"]["remaining"], limit["remaining"], "{context}");
            assert_eq!(take["mode"], limit["mode"], "{context}");
            assert_eq!(take["verdict"] == "allow", limit["allowed"] == true, "{context}");
            let outcome = format!("{} {}", take["mode"], take["verdict"]);
            *seen.entry(outcome).or_insert(0) += 1;
        }
        let matched =
            explained["rules"].as_array().unwrap().iter().filter(|rule| rule["matched"] == true);
        *seen.entry(format!("{} rules", matched.count())).or_insert(0) += 1;
        *seen.entry(format!("rule {}", decided["rule"])).or_insert(0) += 1;
    }
    for expected in [
        "\"enforce\" \"allow\"",
        "\"enforce\" \"deny\"",
        "\"enforce\" \"never\"",
        "\"shadow\" \"allow\"",
        "\"shadow\" \"deny\"",
        "\"shadow\" \"never\"",
        "1 rules",
        "2 rules",
        "3 rules",
        "rule \"jobs\"",
        "rule \"banned\"",
        "rule \"login\"",
        "rule \"search\"",
        "rule \"shared\"",
        "rule \"inline\"",
    ] {
        assert!(seen.contains_key(expected), "{expected} did not occur: {seen:#?}");
    }
}

#[test]
fn explanation_names_the_deciding_rule() {
    let (_scratch, service) = with_policy(
        "version: 1\n\
         rules:\n\
         \x20 - { name: first, limits: [10/h], continue: true }\n\
         \x20 - { name: dear, limits: [12/h], cost: 5 }\n",
    );
    let mut client = service.client();
    let body = json!({"key": "c"});
    let explained = post(&mut client, "/explain", &body);
    let decided = post(&mut client, "/check", &body);
    assert_eq!(explained["takes"][1]["after"]["remaining"], 7);
    assert_eq!((&decided["rule"], &decided["remaining"]), (&json!("dear"), &json!(7)));
    assert_eq!(explained["answer"]["rule"], decided["rule"]);
}

#[test]
fn explains_why_rules_do_not_match() {
    let (_scratch, service) = with_policy(POLICY);
    let mut client = service.client();
    let explained =
        post(&mut client, "/explain", &json!({"facts": {"path": "/search/x", "client": "c"}}));
    let rules = explained["rules"].as_array().unwrap();
    let rule = |name: &str| rules.iter().find(|rule| rule["rule"] == name).unwrap();
    let because = |name: &str| rule(name)["because"].as_str().unwrap_or_default().to_owned();
    assert!(because("jobs").contains("tier"), "{explained}");
    assert!(because("login").contains("/search/x"), "{explained}");
    assert!(because("search").contains("user is missing"), "{explained}");
    assert_eq!(
        (&rule("everyone")["matched"], rule("everyone").get("because")),
        (&json!(true), None)
    );
    assert_eq!(rules.iter().filter(|rule| rule["rule"] == "default").count(), 0, "a rule matched");
    assert_eq!(explained["override"], json!(null));
}

#[test]
fn inline_limits_try_no_rule() {
    let (_scratch, service) = with_policy(POLICY);
    let mut client = service.client();
    let body = json!({"key": "a", "cost": 3, "limits": [{"limit": 10, "window_ms": 3_600_000}]});
    let explained = post(&mut client, "/explain", &body);
    assert_eq!(explained["rules"], json!([]));
    let take = &explained["takes"][0];
    assert_eq!((&take["cost"], &take["before"]["remaining"]), (&json!(3), &json!(10)));
    assert_eq!(take["after"], json!({"count": 3, "remaining": 7}));
    assert_eq!(service.post("/peek", body.to_string()).json()["remaining"], 10);
}
