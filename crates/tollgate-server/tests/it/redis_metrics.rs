//! Metrics of decisions with a shared Redis.

use tollgate_testkit::server::{Flavor, Server};

use crate::metrics_text::Scrape;
use crate::redis::{node, policy};
use crate::service::{Scratch, eventually};

const ALLOWED: &str = r#"ratelimiter_requests_checked_total{result="allowed"}"#;
const BLOCKED: &str = r#"ratelimiter_requests_checked_total{result="blocked"}"#;
const LOCAL: &str = r#"rate_limit_rejections_total{reason="local_exhausted"}"#;
const DISTRIBUTED: &str = r#"rate_limit_rejections_total{reason="distributed_exhausted"}"#;

#[test]
fn redis_and_cached_refusals_count_as_distributed() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--policy", &policy(&scratch, "2/d")]);
    for _ in 0..2 {
        assert_eq!(service.check("k")["allowed"], true);
    }
    let mut refused = 0_u32;
    let mut sources = Vec::new();
    eventually("a cached refusal", || {
        let decision = service.check("k");
        assert_eq!(decision["allowed"], false);
        refused += 1;
        sources.push(decision["source"].as_str().unwrap().to_owned());
        sources.last().is_some_and(|source| source == "cache")
    });
    assert_eq!(sources[0], "store");
    let scrape = Scrape::of(&service);
    let expected = f64::from(refused);
    for (series, value) in
        [(ALLOWED, 2.0), (BLOCKED, expected), (DISTRIBUTED, expected), (LOCAL, 0.0)]
    {
        assert!(scrape.value(series) == value, "{series}: {}", scrape.value(series));
    }
    let has_memory = scrape.names().any(|name| name.starts_with("tollgate_memory"));
    assert!(!has_memory, "memory metrics with Redis");
}

#[test]
fn memory_store_refusals_count_as_local() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "1/d");
    let service = crate::service::Service::start(&["--policy", &file]);
    service.check("k");
    assert_eq!(service.check("k")["allowed"], false);
    let scrape = Scrape::of(&service);
    assert!(scrape.value(LOCAL) == 1.0 && scrape.value(DISTRIBUTED) == 0.0);
}
