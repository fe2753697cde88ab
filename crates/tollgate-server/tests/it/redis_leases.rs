//! Leases of a service: visible in responses, metrics and reports, ended by overrides, lost with a crash.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::admin_client::{put, start_with_admin};
use crate::metrics_text::Scrape;
use crate::redis::{LONG_TIMEOUT, admitted, node};
use crate::service::{Scratch, Service, eventually};

/// Counts of a day, so that nothing refills or ends during a test, for which leases last a second.
const POLICY: &str = "
version: 1
defaults: { limit: 20000/d, algorithm: token_bucket, lease: auto }
";

/// Checks a key until a lease decides.
fn check_until_leased(service: &Service, key: &str) -> Value {
    let mut client = service.client();
    let mut decision = Value::Null;
    eventually("a lease decides", || {
        decision = client.post("/check", json!({"key": key}).to_string()).json();
        decision["source"] == "lease"
    });
    decision
}

#[test]
fn leases_are_visible_in_responses_metrics_and_reports() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let service = node(&server, &["--policy", &scratch.write("policy.yaml", POLICY)]);
    let decision = check_until_leased(&service, "hot");
    assert_eq!((&decision["allowed"], &decision["degraded"]), (&json!(true), &json!(false)));
    let sum =
        decision["limits"][0]["count"].as_u64().zip(decision["limits"][0]["remaining"].as_u64());
    assert_eq!(sum.map(|(count, remaining)| count + remaining), Some(20_000));
    let scrape = Scrape::of(&service);
    for series in [
        "tollgate_lease_granted_total",
        "tollgate_lease_spent_total",
        r#"tollgate_lease_requests_total{result="granted"}"#,
        "tollgate_lease_decisions_total",
    ] {
        assert!(scrape.value(series) > 0.0, "{series}");
    }
    // A lease may end at any time, on a slow machine also before it is shown.
    eventually("an explanation shows the lease", || {
        check_until_leased(&service, "hot");
        let explanation = service.post("/explain", r#"{"key":"hot"}"#).json();
        explanation["takes"][0]["leased"].as_u64().is_some_and(|leased| leased > 0)
    });
    eventually("the counters show the lease", || {
        check_until_leased(&service, "hot");
        let counters = service.get("/api/counters").json();
        counters["counters"][0]["leased"].as_u64().is_some_and(|leased| leased > 0)
    });
}

#[test]
fn nodes_with_leases_admit_at_most_the_limit() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let policy = POLICY.replace("20000", "3000");
    let file = scratch.write("policy.yaml", &policy);
    let nodes = [node(&server, &["--policy", &file]), node(&server, &["--policy", &file])];
    let allowed = admitted(&[&nodes[0], &nodes[1]], "shared", 1000);
    assert!(allowed <= 3000, "{allowed}");
    let decided = |node: &Service| Scrape::of(node).value("tollgate_lease_decisions_total");
    assert!(nodes.iter().any(|node| decided(node) > 0.0));
}

#[test]
fn override_ends_leases_on_every_node() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let file = scratch.write("policy.yaml", POLICY);
    let url = server.url();
    let args = [&["--redis", &url, "--policy", &file], &LONG_TIMEOUT[..]].concat();
    let (service, other) = (start_with_admin(&args), start_with_admin(&args));
    check_until_leased(&service, "customer");
    put(&other, "customer", 1);
    let changed = Instant::now();
    let mut client = service.client();
    eventually("the override applies", || {
        client.post("/check", r#"{"key":"customer"}"#).json()["allowed"] == false
    });
    let elapsed = changed.elapsed();
    assert!(elapsed < Duration::from_secs(15), "{elapsed:?}: 1.5 s on an idle machine");
}

/// FAULTS.md row 25: a crash loses the lease, which stays debited. No request above the limit is admitted.
#[test]
fn crash_with_a_lease_admits_too_few_at_most() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let file = scratch.write("policy.yaml", &POLICY.replace("20000", "2000"));
    let first = node(&server, &["--policy", &file]);
    let mut admitted_before = 0;
    let mut client = first.client();
    eventually("a lease is held", || {
        let decision = client.post("/check", r#"{"key":"k"}"#).json();
        admitted_before += u64::from(decision["allowed"] == true);
        Scrape::of(&first).value("tollgate_lease_held") > 0.0
    });
    let granted = Scrape::of(&first).value("tollgate_lease_granted_total");
    first.kill();
    let second = node(&server, &["--policy", &file]);
    let mut client = second.client();
    let mut admitted_after = 0;
    for _ in 0..4000 {
        let decision = client.post("/check", r#"{"key":"k"}"#).json();
        admitted_after += u64::from(decision["allowed"] == true);
    }
    let total = admitted_before + admitted_after;
    assert!(total <= 2000, "{total}");
    assert!(granted > 0.0 && granted <= 500.0, "at most a quarter of what is left: {granted}");
}
