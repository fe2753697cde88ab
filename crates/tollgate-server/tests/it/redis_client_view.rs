//! `/api/clients/{id}`: refusals, counters and overrides of one client, read from any node.

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::listings::take;
use crate::openapi::{check, description};
use crate::read_api::get;
use crate::redis::node;
use crate::service::{Scratch, Service, eventually};

const POLICY: &str = "\
version: 1
rules:
  - { name: everyone, per: [], limits: [1000/d], continue: true }
  - { name: search, match: { path: /search }, limits: [2/d] }
  - { name: pages, match: { path: /pages }, per: [user, client], limits: [2/d] }
  - { name: login, match: { path: /login }, per: [ip], limits: [1/d] }
";

/// Rule and count of each element.
fn counts(list: &Value) -> Vec<(String, u64)> {
    let name = |entry: &Value| entry["rule"].as_str().unwrap().to_owned();
    let used = list.as_array().unwrap().iter().filter(|entry| entry["count"] != 0);
    let mut found: Vec<_> =
        used.map(|entry| (name(entry), entry["count"].as_u64().unwrap())).collect();
    found.sort();
    found
}

fn expect(found: &[(&str, u64)]) -> Vec<(String, u64)> {
    found.iter().map(|(rule, count)| ((*rule).to_owned(), *count)).collect()
}

#[test]
fn shows_exactly_one_client_in_every_rule() {
    let scratch = Scratch::new();
    let file = scratch.write("policy.yaml", POLICY);
    let server = Server::start(Flavor::Redis);
    let [one, other] = [(); 2].map(|()| node(&server, &["--policy", &file]));
    let send = |node: &Service, facts: Value, times: usize| {
        for _ in 0..times {
            take(node, &json!({ "facts": facts }));
        }
    };
    send(&one, json!({"client": "c1", "path": "/search"}), 5);
    send(&other, json!({"client": "c1", "user": "u", "path": "/pages"}), 3);
    send(&one, json!({"client": "c12", "path": "/search"}), 3);
    send(&one, json!({"client": "c9", "ip": "192.0.2.1", "path": "/login"}), 2);
    let inline = json!([{"limit": 2, "window_ms": 86_400_000}]);
    for _ in 0..3 {
        take(&one, &json!({"key": "c1", "limits": inline}));
    }

    let refused = expect(&[("inline", 1), ("pages", 1), ("search", 3)]);
    for node in [&one, &other] {
        let mut view = Value::Null;
        eventually("both nodes have reported their refusals", || {
            view = get(node, "/api/clients/c1");
            counts(&view["refusals"]) == refused
        });
        assert_eq!(
            counts(&view["counters"]),
            expect(&[("inline", 2), ("pages", 2), ("search", 2)])
        );
        assert_eq!((&view["overrides"], &view["complete"]), (&json!([]), &json!(true)));
        let by_rule =
            |rule| view["refusals"].as_array().unwrap().iter().find(|one| one["rule"] == rule);
        let search = by_rule("search").unwrap();
        assert_eq!(search["facts"], json!({"client": "c1", "path": "/search"}));
        assert_eq!((&search["limit"], &search["limit_text"]), (&json!("86400s"), &json!("2/d")));
        assert_eq!(by_rule("inline").unwrap()["facts"], json!(null));
        check(&description(), "/api/clients/{id}", "get", &node.get("/api/clients/c1"));
    }
    let address = get(&one, "/api/clients/192.0.2.1");
    assert_eq!(counts(&address["refusals"]), expect(&[("login", 1)]), "{address}");
    assert_eq!(counts(&address["counters"]), expect(&[("login", 1)]), "{address}");
    assert_eq!(one.get("/api/clients/c1?prefix=c").status, 400);
}
