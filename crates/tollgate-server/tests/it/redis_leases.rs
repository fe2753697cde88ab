//! Leases of a service: visible in responses, metrics and reports; what ends them; lost with the process.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::admin_client::{put, start_with_admin};
use crate::client::Client;
use crate::metrics_text::Scrape;
use crate::redis::{LONG_TIMEOUT, admitted, node};
use crate::service::{Scratch, Service, eventually};

/// Counts of a day, so that nothing refills or ends during a test, for which leases last a second.
const POLICY: &str = "
version: 1
defaults: { limit: 20000/d, algorithm: token_bucket, lease: auto }
";

const CUSTOMER: &str = r#"{"key":"customer"}"#;

/// Returns a policy of this count per day. Nothing refills in a window, whatever time a test takes.
fn window_of(count: u32) -> String {
    format!("version: 1\ndefaults: {{ limit: {count}/d, algorithm: fixed_window, lease: auto }}\n")
}

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
    let file = scratch.write("policy.yaml", &window_of(3000));
    let nodes = [node(&server, &["--policy", &file]), node(&server, &["--policy", &file])];
    let allowed = admitted(&[&nodes[0], &nodes[1]], "shared", 1000);
    assert!(allowed <= 3000, "{allowed}");
    let decided = |node: &Service| Scrape::of(node).value("tollgate_lease_decisions_total");
    assert!(nodes.iter().any(|node| decided(node) > 0.0));
}

/// Clients continue to check two nodes with leases, and a third node sets the override.
#[test]
fn override_applies_on_nodes_with_leases_within_a_second_and_a_half() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let file = scratch.write("policy.yaml", POLICY);
    let url = server.url();
    let args = [&["--redis", &url, "--policy", &file], &LONG_TIMEOUT[..]].concat();
    let [one, two, other] = [(); 3].map(|()| start_with_admin(&args));
    check_until_leased(&one, "customer");
    check_until_leased(&two, "customer");
    put(&other, "customer", 1);
    let changed = Instant::now();
    let (mut last_check, mut longest_gap) = (changed, Duration::ZERO);
    let mut clients = [one.client(), two.client()];
    eventually("the override applies on both nodes", || {
        longest_gap = longest_gap.max(last_check.elapsed());
        last_check = Instant::now();
        let replies = clients.each_mut().map(|client| client.post("/check", CUSTOMER).json());
        replies.iter().all(|decision| decision["allowed"] == false)
    });
    let elapsed = changed.elapsed();
    // On a busy machine, the processes may not run for a while.
    let max = Duration::from_millis(1500) + 4 * longest_gap;
    assert!(elapsed < max, "{elapsed:?}, and {longest_gap:?} between two checks");
}

#[test]
fn reloaded_limit_does_not_use_the_lease() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let file = scratch.write("policy.yaml", &window_of(20_000));
    let service = node(&server, &["--policy", &file]);
    let mut client = service.client();
    check_until_leased(&service, "customer");
    scratch.write("policy.yaml", &window_of(16));
    eventually("the lower limit applies", || {
        let decision = client.post("/check", CUSTOMER).json();
        let is_new = decision["limit"] == 16;
        // More than 16 requests were admitted before.
        assert!(!is_new || decision["allowed"] == false, "{decision}");
        is_new
    });
    scratch.write(
        "policy.yaml",
        "version: 1\ndefaults: { limit: 20000/d, algorithm: fixed_window }\n",
    );
    eventually("the limit without leases applies", || {
        client.post("/check", CUSTOMER).json()["limit"] == 20_000
    });
    for _ in 0..100 {
        assert_ne!(client.post("/check", CUSTOMER).json()["source"], "lease");
    }
}

/// The only node may admit its lease, and then its share: the whole limit.
#[test]
fn node_without_redis_admits_at_most_its_lease_and_its_share() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let file = scratch.write("policy.yaml", &window_of(2000));
    let service = node(&server, &["--policy", &file]);
    check_until_leased(&service, "customer");
    let total = |name: &str| Scrape::of(&service).value(&format!("tollgate_lease_{name}_total"));
    server.kill();
    let mut client = service.client();
    let [mut leased, mut local] = [0_u32; 2];
    let before = total("spent");
    eventually("the share is used up", || {
        let decision = client.post("/check", CUSTOMER).json();
        let is_allowed = decision["allowed"] == true;
        match (decision["source"].as_str(), is_allowed) {
            (Some("lease"), true) => leased += 1,
            (Some("local"), true) => local += 1,
            (Some("local"), false) => return true,
            _ => panic!("{decision}"),
        }
        false
    });
    assert!(f64::from(leased) <= total("granted") - before, "{leased}");
    assert!(local <= 2000, "{local}");
    eventually("the lease has ended", || Scrape::of(&service).value("tollgate_lease_held") == 0.0);
}

/// Takes with a first node until it holds a lease, ends it, and takes the rest with a second one.
fn assert_lease_is_lost_with_the_node(end: impl FnOnce(Service)) {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let file = scratch.write("policy.yaml", &window_of(2000));
    let first = node(&server, &["--policy", &file]);
    let is_allowed =
        |client: &mut Client| u64::from(client.post("/check", CUSTOMER).json()["allowed"] == true);
    let mut total = 0;
    let mut client = first.client();
    eventually("a lease is held", || {
        total += is_allowed(&mut client);
        Scrape::of(&first).value("tollgate_lease_held") > 0.0
    });
    let granted = Scrape::of(&first).value("tollgate_lease_granted_total");
    assert!(granted > 0.0 && granted <= 500.0, "at most a quarter of what is left: {granted}");
    end(first);
    let second = node(&server, &["--policy", &file]);
    let mut client = second.client();
    while is_allowed(&mut client) > 0 {
        total += 1;
    }
    let lost = 2000 - i64::try_from(total).expect("a small number");
    assert!((0..=500).contains(&lost), "{total} admitted, {granted} leased");
}

/// FAULTS.md row 25: a crash loses the lease, which stays debited. No request above the limit is admitted.
#[test]
fn crash_with_a_lease_admits_too_few_at_most() {
    assert_lease_is_lost_with_the_node(Service::kill);
}

#[test]
fn shutdown_drops_what_is_left_of_a_lease() {
    assert_lease_is_lost_with_the_node(|service| assert!(service.stop().0.success()));
}
