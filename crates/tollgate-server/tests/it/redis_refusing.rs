//! A Redis that answers, and cannot do what it is asked.

use tollgate_testkit::server::{Builder, Flavor, Server};

use crate::redis::node;
use crate::service::eventually;

#[test]
fn without_memory_nothing_is_allowed() {
    let server = Server::builder(Flavor::Redis).arg("--maxmemory-policy").arg("noeviction").start();
    let service = node(&server, &[]);
    assert_eq!(service.check("k")["remaining"], 99);
    server.raw().call(&["CONFIG", "SET", "maxmemory", "1"]);
    let reply = service.post("/check", r#"{"key":"k"}"#);
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{}", reply.body);
    assert!(reply.body.contains("out of memory"), "{}", reply.body);
    server.raw().call(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(service.check("k")["remaining"], 98, "what failed was not counted");
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
    service.wait_for_log("no longer says that it evicts keys");
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
    assert_eq!(results[1]["status"], 503, "{results}");
    let reply = service.post("/check", r#"{"key":"theirs"}"#);
    assert_eq!((reply.status, reply.header("retry-after")), (503, None), "waiting will not help");
    service.wait_for_log("the store could not answer");
    server.kill();
    assert_eq!(service.post("/check", r#"{"key":"ours"}"#).status, 503);
    // One key that cannot be read must not keep the log from telling that the store is lost.
    eventually("both in the log", || {
        service.log().matches("the store could not answer").count() == 2
    });
}
