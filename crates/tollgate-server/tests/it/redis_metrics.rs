//! What is counted of decisions that nodes share.

use tollgate_testkit::server::{Flavor, Server};

use crate::metrics_text::Scrape;
use crate::redis::{node, policy};
use crate::service::{Scratch, eventually};

const ALLOWED: &str = r#"ratelimiter_requests_checked_total{result="allowed"}"#;
const BLOCKED: &str = r#"ratelimiter_requests_checked_total{result="blocked"}"#;
const LOCAL: &str = r#"rate_limit_rejections_total{reason="local_exhausted"}"#;
const DISTRIBUTED: &str = r#"rate_limit_rejections_total{reason="distributed_exhausted"}"#;

#[test]
fn a_refusal_is_a_distributed_one_from_redis_and_from_its_cache() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--policy", &policy(&scratch, "2/d")]);
    for _ in 0..2 {
        assert_eq!(service.check("k")["allowed"], true);
    }
    let mut refused = 0_u32;
    let mut sources = Vec::new();
    eventually("a refusal that was remembered", || {
        let answer = service.check("k");
        assert_eq!(answer["allowed"], false);
        refused += 1;
        sources.push(answer["source"].as_str().unwrap().to_owned());
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
    assert!(!scrape.names().any(|name| name.starts_with("tollgate_memory")), "there is none");
}

#[test]
fn on_memory_a_refusal_is_a_local_one() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "1/d");
    let service = crate::service::Service::start(&["--policy", &file]);
    service.check("k");
    assert_eq!(service.check("k")["allowed"], false);
    let scrape = Scrape::of(&service);
    assert!(scrape.value(LOCAL) == 1.0 && scrape.value(DISTRIBUTED) == 0.0);
}
