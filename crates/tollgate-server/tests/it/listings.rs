//! Listings of counters and blocks with the memory store.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::read_api::{get, parse_time, with_policy};
use crate::service::{Scratch, Service, eventually};

/// Percent-encodes a query value.
fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Returns all items of a listing and the length of its longest page.
pub(crate) fn all_pages(
    service: &Service,
    path: &str,
    list: &str,
    query: &str,
) -> (Vec<Value>, usize) {
    let (mut items, mut longest, mut cursor) = (Vec::new(), 0, Value::Null);
    let mut client = service.client();
    for _ in 0..1000 {
        let next = cursor.as_str().map(|cursor| format!("&cursor={}", percent_encoded(cursor)));
        let reply = client.get(&format!("{path}?{query}{}", next.unwrap_or_default()));
        assert_eq!(reply.status, 200, "{}", reply.body);
        let mut page = reply.json();
        let page_items = page[list].as_array().expect("a list").clone();
        longest = longest.max(page_items.len());
        items.extend(page_items);
        cursor = page["cursor"].take();
        if cursor.is_null() {
            return (items, longest);
        }
    }
    panic!("more than 1000 pages");
}

pub(crate) fn keys(items: &[Value]) -> Vec<String> {
    let mut keys: Vec<String> =
        items.iter().map(|item| item["key"].as_str().unwrap().to_owned()).collect();
    keys.sort();
    keys
}

fn counter_keys(service: &Service, query: &str) -> Vec<String> {
    keys(&all_pages(service, "/api/counters", "counters", query).0)
}

fn blocked_keys(service: &Service, query: &str) -> Vec<String> {
    keys(&all_pages(service, "/api/blocks", "blocked", query).0)
}

pub(crate) fn take(service: &Service, body: &Value) -> Value {
    let reply = service.post("/check", body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

#[test]
fn paging_lists_every_counter_once() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let mut costs = BTreeMap::new();
    for number in 0..250_u64 {
        let (key, cost) = (format!("user:{number:03}"), number % 3 + 1);
        client.post("/check", json!({"key": key, "cost": cost}).to_string());
        costs.insert(key, cost);
    }
    let (counters, longest) = all_pages(&service, "/api/counters", "counters", "limit=37");
    assert_eq!((counters.len(), longest), (250, 37));
    for counter in &counters {
        let cost = costs.remove(counter["key"].as_str().unwrap());
        assert_eq!(counter["count"].as_u64(), cost, "{counter}");
        assert_eq!(counter["remaining"].as_u64(), cost.map(|cost| 100 - cost), "{counter}");
        assert_eq!((&counter["limit"], &counter["window_ms"]), (&json!(100), &json!(60_000)));
    }
    assert!(costs.is_empty(), "a counter was not listed");
    assert_eq!(counter_keys(&service, "limit=1000").len(), 250);
    let page = get(&service, "/api/counters");
    assert_eq!(page["counters"].as_array().unwrap().len(), 100, "the default page size");
    assert!(page["cursor"].is_string());
}

#[test]
fn empty_listing_has_no_cursor() {
    let service = Service::start(&[]);
    assert_eq!(get(&service, "/api/counters"), json!({"counters": [], "cursor": null}));
    assert_eq!(get(&service, "/api/blocks"), json!({"blocked": [], "cursor": null}));
}

#[test]
fn prefix_filters_counters() {
    let service = Service::start(&[]);
    for key in ["user:1", "user:2", "user:10", "job:1", "%41", "%", "a/b", "äpfel", "Äpfel"] {
        take(&service, &json!({ "key": key }));
    }
    let found =
        |prefix: &str| counter_keys(&service, &format!("prefix={}", percent_encoded(prefix)));
    assert_eq!(found("user:1"), ["user:1", "user:10"]);
    assert_eq!(found("user:"), ["user:1", "user:10", "user:2"]);
    assert_eq!(found("%"), ["%", "%41"]);
    assert_eq!(found("%4"), ["%41"]);
    assert_eq!(found("a/"), ["a/b"]);
    assert_eq!(found("ä"), ["äpfel"]);
    assert_eq!(found("none"), [""; 0]);
    assert_eq!(found("").len(), 9);
    let paged = all_pages(&service, "/api/counters", "counters", "prefix=user&limit=1");
    assert_eq!((keys(&paged.0).len(), paged.1), (3, 1));
}

#[test]
fn tenant_filters_counters() {
    let service = Service::start(&[]);
    for (tenant, key) in [("acme", "u1"), ("acme", "v1"), ("acme:eu", "u1"), ("zeta", "u1")] {
        take(&service, &json!({"key": key, "tenant": tenant}));
    }
    take(&service, &json!({"key": "u1"}));
    assert_eq!(counter_keys(&service, "limit=100").len(), 5);
    assert_eq!(counter_keys(&service, "tenant=acme"), ["u1", "v1"]);
    assert_eq!(counter_keys(&service, "tenant=acme&prefix=u"), ["u1"]);
    assert_eq!(counter_keys(&service, &format!("tenant={}", percent_encoded("acme:eu"))), ["u1"]);
    assert_eq!(counter_keys(&service, "tenant=acm"), [""; 0], "a tenant is not a prefix");
    let listed = all_pages(&service, "/api/counters", "counters", "tenant=zeta").0;
    assert_eq!(listed[0]["tenant"], "zeta");
}

#[test]
fn listed_keys_work_as_prefix() {
    let scratch = Scratch::new();
    let path = scratch.write(
        "policy.yaml",
        "version: 1\nrules:\n  - { name: two, per: [client, user], limits: [9/h] }\n",
    );
    let service = Service::start(&["--policy", &path]);
    take(&service, &json!({"facts": {"client": "c1", "user": "u1"}}));
    take(&service, &json!({"facts": {"client": "c2", "user": "u1"}}));
    assert_eq!(counter_keys(&service, "limit=10"), ["c1:u1", "c2:u1"]);
    assert_eq!(counter_keys(&service, "prefix=c1"), ["c1:u1"]);
    assert_eq!(counter_keys(&service, "prefix=c1:u1"), ["c1:u1"], "as listed");
}

#[test]
fn prefix_also_searches_the_tenant_of_the_policy() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", "version: 1\ntenant: acme\n");
    let service = Service::start(&["--policy", &path]);
    take(&service, &json!({"key": "user:1"}));
    assert_eq!(counter_keys(&service, "limit=10"), ["user:1"]);
    assert_eq!(counter_keys(&service, "tenant=acme&prefix=user"), ["user:1"]);
    assert_eq!(counter_keys(&service, "prefix=user"), ["user:1"], "without a tenant parameter");
}

#[test]
fn unusual_keys_are_listed_unchanged() {
    let service = Service::start(&[]);
    let long = "x".repeat(1024);
    let hostile = [
        "<img src=x onerror=alert(1)>",
        "\u{202e}txt.exe",
        "a\r\nset-cookie: b",
        "\u{0}",
        "{tag}",
        "a:b",
        "%41",
        "%-",
        "*",
        "\"",
        "\\",
        "ä\u{308}",
        "💥",
        " ",
        long.as_str(),
        "'; DROP TABLE",
        "rl:{x}:y",
        "\u{7f}",
        "..",
        "a/b",
    ];
    for key in hostile {
        take(&service, &json!({ "key": key }));
    }
    let mut expected: Vec<String> = hostile.map(str::to_owned).into();
    expected.sort();
    assert_eq!(counter_keys(&service, "limit=7"), expected);
    for key in hostile {
        let found = counter_keys(&service, &format!("limit=1000&prefix={}", percent_encoded(key)));
        assert!(found.iter().any(|found| found == key), "{key:?} is not among {found:?}");
    }
    let reply = service.get("/api/counters");
    assert_eq!(reply.headers.iter().filter(|(name, _)| name == "set-cookie").count(), 0);
}

#[test]
fn counters_show_rule_limit_and_algorithm() {
    let (_scratch, service) = with_policy();
    let facts = json!({"method": "GET", "path": "/find", "user": "u1"});
    take(&service, &json!({ "facts": facts }));
    let (mut counters, _) = all_pages(&service, "/api/counters", "counters", "limit=10");
    counters.sort_by_key(|counter| counter["name"].to_string());
    assert_eq!(counters.len(), 2, "one for each limit: {counters:?}");
    for (counter, (name, limit)) in counters.iter().zip([("1d", 20), ("hourly", 2)]) {
        assert_eq!((&counter["key"], &counter["rule"]), (&json!("u1"), &json!("search")));
        assert_eq!(counter["limit"], limit, "{counter}");
        assert_eq!((&counter["count"], &counter["remaining"]), (&json!(1), &json!(limit - 1)));
        assert_eq!(counter["algorithm"], "sliding_window");
        assert!(name == "1d" || counter["name"] == name, "{counter}");
    }
}

#[test]
fn counters_show_the_burst_of_a_token_bucket_as_limit() {
    let service = Service::start(&[]);
    for (key, burst) in [("more", 25), ("less", 5)] {
        take(&service, &json!({"key": key, "limit": 10, "window_ms": 86_400_000, "burst": burst}));
        let (counters, _) =
            all_pages(&service, "/api/counters", "counters", &format!("prefix={key}"));
        let counter = &counters[0];
        assert_eq!((&counter["limit"], &counter["burst"]), (&json!(burst), &json!(burst)));
        assert_eq!((&counter["count"], &counter["remaining"]), (&json!(1), &json!(burst - 1)));
    }
}

#[test]
fn blocks_list_only_keys_refused_now() {
    let (_scratch, service) = with_policy();
    take(&service, &json!({"key": "full", "cost": 50}));
    take(&service, &json!({"key": "almost", "cost": 49}));
    let facts = json!({"method": "GET", "path": "/find", "user": "u1"});
    take(&service, &json!({"facts": facts, "cost": 2}));
    let (items, _) = all_pages(&service, "/api/blocks", "blocked", "limit=10");
    assert_eq!(keys(&items), ["full", "u1"]);
    for item in &items {
        let until = parse_time(&item["blocked_until"]).duration_since(Timestamp::now());
        assert!(until.as_secs_f64() > 0.0, "{item}");
        let (rule, limit, max) = match item["key"].as_str() {
            Some("full") => ("default", "600s", 600),
            _ => ("search", "hourly", 3600),
        };
        assert!(until.as_secs() <= max, "{item}");
        let reason = item["reason"].as_str().unwrap();
        assert!(reason.contains(rule) && reason.contains(limit), "{reason}");
    }
    let refund = json!({"key": "full"}).to_string();
    service.post("/refund", refund);
    assert_eq!(blocked_keys(&service, "limit=10"), ["u1"], "the refund unblocks it");
}

#[test]
fn shadow_and_trial_limits_block_no_key() {
    let (_scratch, service) = with_policy();
    for path in ["/watched", "/tried"] {
        for _ in 0..3 {
            let answer = take(&service, &json!({"facts": {"client": "c", "path": path}}));
            assert_eq!(answer["allowed"], true);
        }
    }
    assert_eq!(blocked_keys(&service, "limit=10"), [""; 0]);
}

#[test]
fn blocks_use_the_cost_of_the_rule() {
    let (_scratch, service) = with_policy();
    let body = json!({"facts": {"client": "c", "path": "/dear"}});
    take(&service, &body);
    assert_eq!(blocked_keys(&service, "limit=10"), [""; 0]);
    assert_eq!(take(&service, &body)["remaining"], 2);
    assert_eq!(take(&service, &body)["allowed"], false, "2 remain and the rule costs 4");
    assert_eq!(blocked_keys(&service, "limit=10"), ["c"]);
}

#[test]
fn block_expires() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", "version: 1\ndefaults: { limit: 1/1s }\n");
    let service = Service::start(&["--policy", &path]);
    // On a slow machine the listing may take longer than the block.
    eventually("the key is blocked", || {
        service.check("c");
        blocked_keys(&service, "limit=10") == ["c"]
    });
    eventually("the block expires", || blocked_keys(&service, "limit=10").is_empty());
}

#[test]
fn paging_lists_every_block_once_within_page_size() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let mut expected = Vec::new();
    for number in 0..120 {
        let key = format!("user:{number:03}");
        let cost = if number % 3 == 0 { 50 } else { 100 };
        client.post("/check", json!({"key": key, "cost": cost}).to_string());
        if cost == 100 {
            expected.push(key);
        }
    }
    let (items, longest) = all_pages(&service, "/api/blocks", "blocked", "limit=7");
    assert_eq!(keys(&items), expected);
    assert!(longest <= 7, "{longest} items on a page of 7");
    assert_eq!(blocked_keys(&service, "limit=7&prefix=user:11").len(), 7);
}

#[test]
fn escaped_keys_work_as_prefix() {
    let scratch = Scratch::new();
    let path = scratch.write(
        "policy.yaml",
        "version: 1\nrules:\n\
         - { name: all, match: { path: /all }, per: [], limits: [10/h] }\n\
         - { name: two, match: { path: /two }, per: [client, user], limits: [10/h] }\n",
    );
    let service = Service::start(&["--policy", &path]);
    for facts in [
        json!({"path": "/all"}),
        json!({"path": "/two", "client": "a b", "user": "x:y"}),
        json!({"path": "/"}),
    ] {
        service.post("/check", json!({ "facts": facts }).to_string());
    }
    let all = service.get("/api/counters").json()["counters"].clone();
    let all: Vec<&str> =
        all.as_array().unwrap().iter().map(|c| c["key"].as_str().unwrap()).collect();
    assert_eq!(all.len(), 3, "{all:?}");
    for key in all {
        let escaped = key.replace('%', "%25").replace(' ', "%20");
        let found = service.get(&format!("/api/counters?prefix={escaped}")).json();
        let mut found = found["counters"].as_array().unwrap().iter();
        assert!(found.any(|counter| counter["key"] == key), "{key}");
    }
    assert_eq!(service.get("/api/counters?prefix=%ff").status, 400);
}

#[test]
fn inline_limit_named_like_a_trial_can_block() {
    let service = Service::start(&[]);
    let body = json!({"key": "k", "cost": 5, "limits": [
        {"name": "next.x", "limit": 5, "window_ms": 3_600_000},
    ]});
    service.post("/check", body.to_string());
    assert_eq!(blocked_keys(&service, "limit=10"), ["k"]);
}
