//! A Redis that replies with errors: out of memory, evicting keys, keys of another type.

use tollgate_testkit::server::{Builder, Flavor, Server};

use crate::redis::node;
use crate::service::eventually;

#[test]
fn redis_without_memory_causes_degraded_mode() {
    let server = Server::builder(Flavor::Redis).arg("--maxmemory-policy").arg("noeviction").start();
    let service = node(&server, &["--probe-ms", "50"]);
    assert_eq!(service.check("k")["remaining"], 99);
    server.raw().call(&["CONFIG", "SET", "maxmemory", "1"]);
    let decision = service.check("k");
    assert_eq!((&decision["source"], &decision["degraded"]), (&"local".into(), &true.into()));
    let warning = service.get("/api/status").json()["store"]["warning"].clone();
    assert!(warning.as_str().is_some_and(|text| text.contains("out of memory")), "{warning}");
    // A probe that cannot write does not close the breaker.
    (0..10).for_each(|_| assert_eq!(service.check("k")["degraded"], true));
    assert_eq!(service.get("/api/status").json()["breaker"], "open");
    server.raw().call(&["CONFIG", "SET", "maxmemory", "0"]);
    eventually("Redis is used again", || service.check("other")["degraded"] == false);
    assert_eq!(
        service.check("k")["remaining"],
        100 - 1 - 11 - 1,
        "admissions of the outage are debited"
    );
}

#[test]
fn warns_of_evicting_redis_at_start() {
    let evicting = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let builder = evicting.into_iter().fold(Server::builder(Flavor::Redis), Builder::arg);
    let service = node(&builder.start(), &[]);
    let warning = service.get("/api/status").json()["store"]["warning"].clone();
    assert!(warning.as_str().is_some_and(|text| text.contains("(allkeys-lru)")), "{warning}");
    assert!(service.log().contains("noeviction"), "{}", service.log());
}

#[test]
fn warns_while_redis_evicts() {
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--report-ms", "10"]);
    let warning = || service.get("/api/status").json()["store"]["warning"].clone();
    assert!(warning().is_null(), "{}", warning());
    let mut raw = server.raw();
    raw.call(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"]);
    raw.call(&["CONFIG", "SET", "maxmemory", "100mb"]);
    eventually("a warning", || {
        warning().as_str().is_some_and(|text| text.contains("(allkeys-lfu)"))
    });
    raw.call(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    eventually("no warning", || warning().is_null());
    service.wait_for_log("no longer evicts keys");
    let log = service.log();
    assert_eq!(log.matches("(allkeys-lfu)").count(), 1, "{log}");
}

#[test]
fn key_of_another_type_fails_alone() {
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &[]);
    service.check("theirs");
    let mut raw = server.raw();
    let found = raw.call(&["KEYS", "rl:{:theirs}*"]);
    let key = found.array()[0].text();
    raw.call(&["DEL", key]);
    raw.call(&["HSET", key, "field", "value"]);
    let batch = r#"{"requests":[{"key":"ours"},{"key":"theirs"},{"key":"ours"}]}"#;
    let results = service.post("/check/batch", batch).json()["results"].clone();
    assert_eq!((&results[0]["count"], &results[2]["count"]), (&1.into(), &2.into()), "{results}");
    assert_eq!((&results[1]["degraded"], &results[0]["degraded"]), (&true.into(), &false.into()));
    // Failures of one key do not open the breaker.
    (0..20).for_each(|_| assert_eq!(service.check("theirs")["degraded"], true));
    assert_eq!(service.check("ours")["degraded"], false);
    service.wait_for_log("the store cannot read a key");
    let log = service.log();
    assert_eq!(log.matches("the store cannot read a key").count(), 1, "{log}");
    // Other failures are still logged.
    server.kill();
    (0..5).for_each(|_| assert_eq!(service.check("ours")["degraded"], true));
    service.wait_for_log("store lost");
}
