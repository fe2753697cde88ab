//! A Redis that answers, and cannot do what it is asked.

use tollgate_testkit::server::{Builder, Flavor, Server};

use crate::redis::node;
use crate::service::eventually;

#[test]
fn without_memory_it_is_as_good_as_lost() {
    let server = Server::builder(Flavor::Redis).arg("--maxmemory-policy").arg("noeviction").start();
    let service = node(&server, &["--probe-ms", "50"]);
    assert_eq!(service.check("k")["remaining"], 99);
    server.raw().call(&["CONFIG", "SET", "maxmemory", "1"]);
    let answer = service.check("k");
    assert_eq!((&answer["source"], &answer["degraded"]), (&"local".into(), &true.into()));
    let warning = service.get("/api/status").json()["store"]["warning"].clone();
    assert!(warning.as_str().is_some_and(|text| text.contains("out of memory")), "{warning}");
    // A probe that could not write does not find it back.
    (0..10).for_each(|_| assert_eq!(service.check("k")["degraded"], true));
    assert_eq!(service.get("/api/status").json()["breaker"], "open");
    server.raw().call(&["CONFIG", "SET", "maxmemory", "0"]);
    eventually("it is back", || service.check("other")["degraded"] == false);
    assert_eq!(service.check("k")["remaining"], 100 - 1 - 11 - 1, "what was spent alone is known");
}

#[test]
fn one_that_evicts_is_warned_of() {
    let evicting = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let builder = evicting.into_iter().fold(Server::builder(Flavor::Redis), Builder::arg);
    let service = node(&builder.start(), &[]);
    let warning = service.get("/api/status").json()["store"]["warning"].clone();
    assert!(warning.as_str().is_some_and(|text| text.contains("(allkeys-lru)")), "{warning}");
    assert!(service.log().contains("noeviction"), "{}", service.log());
}

#[test]
fn one_that_begins_to_evict_is_warned_of_until_it_no_longer_does() {
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--heartbeat-ms", "10"]);
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
fn a_foreign_key_fails_alone() {
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
    // However often it cannot be read, others are asked about.
    (0..20).for_each(|_| assert_eq!(service.check("theirs")["degraded"], true));
    assert_eq!(service.check("ours")["degraded"], false);
    service.wait_for_log("the store cannot read a key");
    let log = service.log();
    assert_eq!(log.matches("the store cannot read a key").count(), 1, "{log}");
    // And the log goes on telling of all else.
    server.kill();
    (0..5).for_each(|_| assert_eq!(service.check("ours")["degraded"], true));
    service.wait_for_log("store lost");
}
