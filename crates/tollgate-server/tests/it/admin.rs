//! Admin API of a node without Redis.

use std::fs;

use serde_json::{Value, json};

use crate::admin_client::{
    TOKEN, admin, audit, daily_limit, daily_limit_of, limits_of, put, start_with_admin,
};
use crate::metrics_text::Scrape;
use crate::openapi::{check, description};
use crate::service::{Scratch, Service, eventually};

const POLICY: &str = "\
version: 1
defaults: { limit: 10/d }
rules:
  - { name: pages, match: { path: /pages }, per: [client, page], limits: [10/d] }
  - { name: site, match: { path: /site }, per: [ip], limits: [10/d] }
  - { name: trial, match: { path: /trial }, limits: [10/d], next: { limits: [2/d] } }
";

fn with_policy(args: &[&str]) -> (Scratch, Service) {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", POLICY);
    let service = start_with_admin(&[&["--policy", &path], args].concat());
    (scratch, service)
}

#[test]
fn sets_reads_and_removes_overrides() {
    let (_scratch, service) = with_policy(&[]);
    let path = limits_of("c1");
    assert_eq!(admin(&service, "GET", &path, "").status, 404);
    assert_eq!(admin(&service, "DELETE", &path, "").status, 404);
    assert_eq!(service.check("c1")["remaining"], 9);
    let stored = put(&service, "c1", 20);
    assert_eq!((&stored["rule"], &stored["applies_to"]), (&json!("default"), &json!(["default"])));
    assert_eq!((&stored["reason"], &stored["author"]), (&json!("tests"), &json!("kim")));
    let decision = service.check("c1");
    assert_eq!(
        (&decision["limit"], &decision["remaining"]),
        (&json!(20), &json!(18)),
        "the used count is kept"
    );
    assert_eq!(service.check("c2")["limit"], 10, "other clients keep the policy limit");
    let read = admin(&service, "GET", &path, "");
    assert_eq!((read.status, &read.json()["overrides"]), (200, &stored["overrides"]));
    let listed = admin(&service, "GET", "/admin/overrides", "").json();
    assert_eq!(listed["overrides"], stored["overrides"]);
    assert_eq!(service.get("/api/limits").json()["per_key_limits"], json!({"c1": 20}));
    let counters = service.get("/api/counters?prefix=c1").json();
    assert_eq!(counters["counters"][0]["limit"], 20, "{counters}");
    let removed = admin(&service, "DELETE", &path, "");
    assert_eq!((removed.status, removed.body.as_str()), (204, ""));
    assert_eq!(service.check("c1")["remaining"], 7);
    assert_eq!(admin(&service, "GET", &path, "").status, 404);
}

#[test]
fn explain_shows_the_override() {
    let (_scratch, service) = with_policy(&[]);
    put(&service, "c1", 20);
    let explained = service.post("/explain", r#"{"key":"c1"}"#).json();
    assert_eq!(explained["override"]["client"], "c1");
    assert_eq!(explained["override"]["applies_to"], json!(["default"]));
    assert!(explained["override"].get("reason").is_none(), "only admins may read the reason");
    assert_eq!(explained["takes"][0]["numbers"]["limit"], 20);
    let other_rule = r#"{"facts":{"client":"c1","path":"/pages","page":"a"}}"#;
    let explained = service.post("/explain", other_rule).json();
    assert_eq!(explained["override"], Value::Null, "the override is for another rule");
    assert_eq!(explained["overrides"][0]["rule"], "default");
    let explained = service.post("/explain", r#"{"key":"c2"}"#).json();
    assert_eq!(explained["override"], Value::Null);
}

#[test]
fn stats_and_reset_cover_all_counters_of_a_client() {
    let (_scratch, service) = with_policy(&[]);
    let check = |facts: Value| service.post("/check", json!({ "facts": facts }).to_string()).json();
    for page in ["a", "b"] {
        check(json!({"client": "c1", "path": "/pages", "page": page}));
    }
    check(json!({"client": "c1", "path": "/trial"}));
    check(json!({"client": "c1"}));
    check(json!({"client": "c2"}));
    check(json!({"ip": "192.0.2.1", "client": "c1", "path": "/site"}));
    let inline = r#"{"key":"c1","limits":[{"limit":5,"window_ms":86400000}]}"#;
    service.post("/check", inline);
    let path = |operation: &str| format!("/admin/external/clients/c1/{operation}");
    let stats = admin(&service, "GET", &path("stats"), "").json();
    assert_eq!((&stats["complete"], &stats["overridden"]), (&json!(true), &json!(false)));
    let mut used: Vec<(String, String, u64)> = stats["counters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|counter| {
            let text = |name: &str| counter[name].as_str().unwrap().to_owned();
            (text("rule") + "/" + &text("name"), text("key"), counter["count"].as_u64().unwrap())
        })
        .collect();
    used.sort();
    let expected = [
        ("default/86400s", "c1", 1),
        ("inline/86400s", "c1", 1),
        ("pages/86400s", "c1:a", 1),
        ("pages/86400s", "c1:b", 1),
        ("trial/86400s", "c1", 1),
        ("trial/next.86400s", "c1", 1),
    ];
    let expected = expected.map(|(limit, key, used)| (limit.to_owned(), key.to_owned(), used));
    assert_eq!(used, expected);
    assert_eq!(admin(&service, "POST", &path("reset"), "").status, 204);
    let stats = admin(&service, "GET", &path("stats"), "").json();
    for counter in stats["counters"].as_array().unwrap() {
        assert_eq!(counter["count"], 0, "{counter}");
    }
    assert_eq!(service.check("c2")["remaining"], 8, "other clients are not reset");
    let site = check(json!({"ip": "192.0.2.1", "path": "/site"}));
    assert_eq!(site["remaining"], 8, "a rule without client in `per` is not reset");
}

#[test]
fn audits_every_change_with_old_and_new_values() {
    let (_scratch, service) = with_policy(&[]);
    put(&service, "c1", 20);
    put(&service, "c1", 30);
    admin(&service, "DELETE", &(limits_of("c1") + "?author=lee&reason=over"), "");
    admin(&service, "DELETE", &limits_of("c1"), "");
    admin(&service, "POST", "/admin/external/clients/c%3A1/reset?tenant=acme", "");
    admin(&service, "POST", "/admin/policy/reload", "");
    let entries: Vec<_> = audit(&service)
        .iter()
        .map(|entry| {
            let limit = |side: &str| entry[side]["limits"][0]["limit"].clone();
            (entry["action"].clone(), entry["author"].clone(), limit("old"), limit("new"))
        })
        .collect();
    let null = Value::Null;
    assert_eq!(
        entries,
        [
            (json!("policy.reload"), json!(""), null.clone(), null.clone()),
            (json!("client.reset"), json!(""), null.clone(), null.clone()),
            (json!("override.remove"), json!("lee"), json!(30), null.clone()),
            (json!("override.set"), json!("kim"), json!(20), json!(30)),
            (json!("override.set"), json!("kim"), null.clone(), json!(20)),
        ]
    );
    let entries = audit(&service);
    assert_eq!((&entries[1]["client"], &entries[1]["tenant"]), (&json!("c:1"), &json!("acme")));
    assert_eq!(entries[0]["old"], entries[0]["new"], "the policy is unchanged");
    assert_eq!((&entries[2]["reason"], &entries[2]["peer"]), (&json!("over"), &json!("127.0.0.1")));
    assert_eq!(entries[2]["token"].as_str().map(str::len), Some(8));
    service.wait_for_log("action=\"override.remove\" client=\"c1\"");
    let page = admin(&service, "GET", "/admin/audit?limit=2", "").json();
    let next = format!("/admin/audit?limit=9&cursor={}", page["cursor"].as_str().unwrap());
    let rest = admin(&service, "GET", &next, "").json();
    assert_eq!(rest["audit"].as_array().unwrap().len(), 3);
}

#[test]
fn override_expires() {
    let (_scratch, service) = with_policy(&[]);
    let now = service.get("/api/status").json()["node"]["now"].as_str().unwrap().to_owned();
    let past = json!({"limits": [{"limit": 1, "window_ms": 1000}], "expires_at": now});
    let reply = admin(&service, "PUT", &limits_of("c1"), &past.to_string());
    assert_eq!((reply.status, &reply.json()["field"]), (400, &json!("expires_at")));
    let end: jiff::Timestamp = now.parse().unwrap();
    let end = end + jiff::SignedDuration::from_secs(5);
    let mut body = daily_limit_of("default", 20);
    body["expires_at"] = json!(end.to_string());
    let reply = admin(&service, "PUT", &limits_of("c1"), &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    eventually("the override expires", || {
        let limit = service.check("c1")["limit"].clone();
        assert!(limit == 20 || jiff::Timestamp::now() >= end, "too early");
        limit == 10
    });
    assert_eq!(admin(&service, "GET", &limits_of("c1"), "").status, 404);
}

#[test]
fn rejects_invalid_overrides_naming_the_field() {
    let (_scratch, service) = with_policy(&[]);
    let limit = |rest: &str| format!(r#"{{"limits":[{{"limit":20,{rest}}}]}}"#);
    for (body, field) in [
        (String::new(), ""),
        ("{}".to_owned(), "limits"),
        (r#"{"limits":[]}"#.to_owned(), "limits"),
        (r#"{"limits":[{"limit":20}]}"#.to_owned(), "limits[0].window_ms"),
        (limit(r#""window_ms":0"#), "limits[0].window_ms"),
        (limit(r#""window_ms":-1"#), "limits[0].window_ms"),
        (limit(r#""window_ms":1e308"#), "limits[0].window_ms"),
        (limit(r#""window_ms":18446744073709551615"#), "limits[0].window_ms"),
        (limit(r#""window_ms":1000,"burst":0"#), "limits[0].burst"),
        (limit(r#""window_ms":1000,"algorithm":"leaky""#), "limits[0].algorithm"),
        (limit(r#""window_ms":1000,"algorithm":"concurrency""#), "limits[0].window_ms"),
        (limit(r#""window_ms":1000,"name":"a b""#), "limits[0].name"),
        (limit(r#""window_ms":1000,"align":"day""#), "limits[0].align"),
        (limit(r#""window_ms":1000,"x":1"#), "limits[0].x"),
        (limit(r#""window_ms":1000,"limit":3"#), "limits[0].limit"),
        (
            r#"{"limits":[{"limit":1,"window_ms":1},{"limit":2,"window_ms":1}]}"#.to_owned(),
            "limits[1]",
        ),
        (
            r#"{"limits":[{"limit":1000000,"window_ms":86400000}],"rule":"default"}"#.to_owned(),
            "limits[0]",
        ),
        (r#"{"limits":[{"limit":1,"window_ms":1}]}"#.to_owned(), "rule"),
        (
            r#"{"limits":[{"limit":1,"window_ms":1}],"rule":"pages","all_rules":true}"#.to_owned(),
            "all_rules",
        ),
        (r#"{"limits":[{"limit":1,"window_ms":1}],"rule":"pagez"}"#.to_owned(), "rule"),
        (r#"{"limits":[{"limit":1,"window_ms":1}],"rule":"site"}"#.to_owned(), "rule"),
        (r#"{"limits":[{"limit":1,"window_ms":1}],"expires_at":"soon"}"#.to_owned(), "expires_at"),
        (
            r#"{"limits":[{"limit":1,"window_ms":1}],"expires_at":"2300-01-01T00:00:00Z"}"#
                .to_owned(),
            "expires_at",
        ),
        (
            format!(r#"{{"limits":[{{"limit":1,"window_ms":1}}],"author":"{}"}}"#, "a".repeat(201)),
            "author",
        ),
        (
            format!(
                r#"{{"limits":[{{"limit":1,"window_ms":1}}],"reason":"{}"}}"#,
                "a".repeat(1001)
            ),
            "reason",
        ),
    ] {
        let reply = admin(&service, "PUT", &limits_of("c1"), &body);
        let expected = if body.is_empty() { 415 } else { 400 };
        assert_eq!(reply.status, expected, "{body}: {}", reply.body);
        assert_eq!(reply.json()["field"].as_str().unwrap_or_default(), field, "{}", reply.body);
    }
    for (path, field) in [
        (limits_of(&"a".repeat(1025)), "id"),
        (limits_of("%FF"), "id"),
        (limits_of("c1") + "?tenant=%FF", "tenant"),
        (limits_of("c1") + "?reason=%FF", "reason"),
        (limits_of("c1") + "?rule=default", "rule"),
    ] {
        let reply = admin(&service, "PUT", &path, &daily_limit(1));
        assert_eq!((reply.status, &reply.json()["field"]), (400, &json!(field)), "{path}");
    }
    assert_eq!(audit(&service).len(), 0, "no change was audited");
    let unusual = "a%2Fb%00%0D%0A%3Cimg%3E%E2%80%AE";
    assert_eq!(put(&service, unusual, 1)["client"], "a/b\0\r\n<img>\u{202e}");
}

#[test]
fn reload_succeeds_or_is_422_with_the_reason() {
    let (scratch, service) = with_policy(&[]);
    scratch.write("policy.yaml", "version: 1\ndefaults: { limit: 7/d }\n");
    let reply = admin(&service, "POST", "/admin/policy/reload", "");
    assert_eq!((reply.status, &reply.json()["rules"]), (200, &json!(0)));
    assert_eq!(service.check("c1")["limit"], 7, "immediately");
    let bad: String =
        (0..12).map(|n| format!("  - {{ name: r{n}, limits: 1/minute }}\n")).collect();
    scratch.write("policy.yaml", &format!("version: 1\nrulez: []\nrules:\n{bad}"));
    let reply = admin(&service, "POST", "/admin/policy/reload", "");
    assert_eq!(reply.status, 422);
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.lines().next().unwrap().contains("policy.yaml:2:1: rulez"), "{detail}");
    assert_eq!(detail.matches("did you mean 1/min?").count(), 12, "all errors: {detail}");
    assert_eq!(service.check("c1")["limit"], 7);
    // The failure is counted even if the file is repaired before the next poll.
    scratch.write("policy.yaml", "version: 1\ndefaults: { limit: 7/d }\n");
    let failed = Scrape::of(&service).value(r#"tollgate_policy_reloads_total{result="error"}"#);
    assert!(failed >= 1.0, "{failed}");
    eventually("the policy error is cleared", || {
        service.get("/api/status").json()["policy"]["error"].is_null()
    });
    let without = start_with_admin(&[]);
    assert_eq!(admin(&without, "POST", "/admin/policy/reload", "").status, 422);
}

#[test]
fn data_directory_keeps_overrides_and_audit() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("data");
    let args = ["--data-dir", directory.to_str().unwrap()];
    let service = start_with_admin(&args);
    assert_eq!(admin(&service, "GET", "/admin/overrides", "").json()["kept_in"], "data_dir");
    let stored = put(&service, "c1", 20);
    // SIGKILL: nothing can be saved on exit.
    service.kill();
    let service = start_with_admin(&args);
    let read = admin(&service, "GET", &limits_of("c1"), "").json();
    assert_eq!(read["overrides"], stored["overrides"]);
    assert_eq!(audit(&service).len(), 1);
    assert!(service.stop().0.success());
    fs::write(directory.join("administration.json"), "{\"version\":").unwrap();
    let refused = crate::service::run(&[&["serve", "--http", "127.0.0.1:0"], &args[..]].concat());
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("administration.json"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--discard-bad-state"), "{}", refused.stderr);
    let service = start_with_admin(&[&args[..], &["--discard-bad-state"]].concat());
    assert_eq!(admin(&service, "GET", "/admin/overrides", "").json()["overrides"], json!([]));
    assert!(directory.join("administration.json.bad").exists());
}

#[test]
fn warns_that_overrides_in_memory_are_lost() {
    let service = start_with_admin(&[]);
    service.wait_for_log("overrides are stored in memory only");
    assert_eq!(admin(&service, "GET", "/admin/overrides", "").json()["kept_in"], "memory");
}

#[test]
fn disconnecting_client_leaves_no_partial_change() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("data");
    let service = start_with_admin(&["--data-dir", directory.to_str().unwrap()]);
    let file = directory.join("administration.json");
    for round in 0..60 {
        for nth in 0..3 {
            let body = daily_limit(round * 3 + nth);
            let head = format!(
                "PUT {} HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {TOKEN}\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                limits_of(&format!("c{nth}")),
                body.len(),
            );
            let mut client = service.client();
            client.send(head.as_bytes()).unwrap();
        }
        let text = fs::read_to_string(&file).unwrap_or_else(|_| "{}".to_owned());
        assert!(serde_json::from_str::<Value>(&text).is_ok(), "incomplete: {text}");
    }
    put(&service, "last", 7);
    let active = admin(&service, "GET", "/admin/overrides", "").json()["overrides"].clone();
    service.kill();
    let service = start_with_admin(&["--data-dir", directory.to_str().unwrap()]);
    let saved = admin(&service, "GET", "/admin/overrides", "").json()["overrides"].clone();
    // Some requests may have completed after the listing: no saved override is older than the listed one.
    for listed in active.as_array().unwrap() {
        let mut overrides = saved.as_array().unwrap().iter();
        let same = overrides.find(|override_| override_["client"] == listed["client"]);
        let [saved_at, listed_at] =
            [&same.expect("the override is saved")["set_at"], &listed["set_at"]].map(Value::as_str);
        assert!(saved_at >= listed_at, "{listed} {saved}");
    }
}

#[test]
fn concurrent_changes_all_become_active() {
    let service = start_with_admin(&[]);
    let (service, clients) = (&service, 0..320);
    std::thread::scope(|scope| {
        for worker in 0..16 {
            let share = clients.clone().filter(move |nth| nth % 16 == worker);
            scope.spawn(move || {
                for nth in share {
                    let client = format!("c{nth}");
                    put(service, &client, 5);
                    assert_eq!(
                        admin(service, "GET", &limits_of(&client), "").status,
                        200,
                        "{client}"
                    );
                }
            });
        }
    });
    let metrics = service.get("/metrics").body;
    assert!(metrics.contains("tollgate_overrides 320\n"), "{metrics}");
}

#[test]
fn override_cannot_exceed_the_takes_of_a_plan() {
    let scratch = Scratch::new();
    let chain = |limits: &str| {
        let rule =
            |name: &str| format!("  - {{ name: {name}, limits: [{limits}], continue: true }}\n");
        format!("version: 1\nrules:\n{}{}{}", rule("a"), rule("b"), rule("c"))
    };
    let path = scratch.write("policy.yaml", &chain("10/d"));
    let service = start_with_admin(&["--policy", &path]);
    let limits: Vec<Value> =
        (1..=6).map(|nth| json!({"limit": 9, "window_ms": nth * 1000})).collect();
    let body = |count: usize| {
        json!({"limits": limits[..count], "all_rules": true, "only": true}).to_string()
    };
    let refused = admin(&service, "PUT", &limits_of("c1"), &body(6));
    assert_eq!((refused.status, &refused.json()["field"]), (400, &json!("limits")));
    assert!(refused.body.contains("19 takes"), "{}", refused.body);
    assert_eq!(admin(&service, "PUT", &limits_of("c1"), &body(4)).status, 200);
    assert_eq!(service.check("c1")["limit"], 9);
    // With this policy the stored override would exceed the maximum number of takes.
    let rest = "  - { name: d, limits: [10/d, 100/h, 100/min], continue: true }\n  \
                - { name: e, limits: [10/d, 100/h] }\n";
    scratch.write("policy.yaml", &(chain("10/d") + rest));
    assert_eq!(admin(&service, "POST", "/admin/policy/reload", "").status, 200);
    assert_eq!(service.check("c1")["limit"], 10, "the policy limit applies instead");
    let stored = admin(&service, "GET", &limits_of("c1"), "").json();
    assert!(stored["problem"].as_str().unwrap().contains("takes"), "{stored}");
}

#[test]
fn lists_overrides_in_pages() {
    let (_scratch, service) = with_policy(&[]);
    for client in ["a1", "a2", "b1", "a3"] {
        put(&service, client, 1);
    }
    let list = |query: &str| {
        let reply = admin(&service, "GET", &format!("/admin/overrides?{query}"), "").json();
        let clients = reply["overrides"].as_array().unwrap().iter();
        let clients: Vec<String> =
            clients.map(|override_| override_["client"].as_str().unwrap().to_owned()).collect();
        (clients, reply["cursor"].as_str().map(str::to_owned))
    };
    let (first, cursor) = list("limit=2");
    assert_eq!(first, ["a1", "a2"]);
    let (rest, end) = list(&format!("limit=2&cursor={}", cursor.unwrap()));
    assert_eq!((rest, end), (vec!["a3".to_owned(), "b1".to_owned()], None));
    assert_eq!(list("prefix=b").0, ["b1"]);
    assert_eq!(list("tenant=acme").0, [""; 0]);
    let limits = service.get("/api/limits?limit=3").json();
    assert_eq!(limits["per_key_limits"], json!({"a1": 1, "a2": 1, "a3": 1}));
    let next = format!("/api/limits?cursor={}", limits["cursor"].as_str().unwrap());
    assert_eq!(service.get(&next).json()["per_key_limits"], json!({"b1": 1}));
}

#[test]
fn admin_responses_match_their_schemas() {
    let (_scratch, service) = with_policy(&[]);
    let description = description();
    let limits = "/admin/external/clients/{id}/limits";
    let stats = "/admin/external/clients/{id}/stats";
    let reset = "/admin/external/clients/{id}/reset";
    let full = json!({
        "limits": [
            {"limit": 20, "window_ms": 60_000, "burst": 5, "algorithm": "token_bucket", "name": "x"},
            {"limit": 0, "window_ms": 86_400_000},
        ],
        "rule": "pages", "only": true, "fresh": true, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z",
    });
    service.check("c1");
    let checked = |method: &str, template: &str, path: &str, body: &str| {
        let reply = admin(&service, method, path, body);
        if reply.status != 204 {
            check(&description, template, &method.to_lowercase(), &reply);
        }
        reply.status
    };
    let of = |template: &str| template.replace("{id}", "c1");
    for (method, template, body, status) in [
        ("GET", limits, String::new(), 404),
        ("DELETE", limits, String::new(), 404),
        ("PUT", limits, full.to_string(), 200),
        ("PUT", limits, daily_limit(3), 200),
        ("PUT", limits, "{".to_owned(), 400),
        ("PUT", limits, r#"{"limits":[{"limit":1,"window_ms":1}]}"#.to_owned(), 400),
        ("GET", limits, String::new(), 200),
        ("GET", stats, String::new(), 200),
        ("POST", reset, String::new(), 204),
        ("GET", "/admin/overrides", String::new(), 200),
        ("POST", "/admin/policy/reload", String::new(), 200),
        ("DELETE", limits, String::new(), 204),
        ("GET", "/admin/audit", String::new(), 200),
    ] {
        assert_eq!(checked(method, template, &of(template), &body), status, "{method} {template}");
    }
    put(&service, "c1", 3);
    check(&description, "/explain", "post", &service.post("/explain", r#"{"key":"c1"}"#));
    check(&description, "/api/limits", "get", &service.get("/api/limits"));
    assert_eq!(checked("GET", "/admin/audit", "/admin/audit?cursor=x", ""), 400);
    assert_eq!(checked("GET", "/admin/overrides", "/admin/overrides?limit=0", ""), 400);
}
