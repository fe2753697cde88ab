//! Traces: what is exported, what never is, and a collector that does not do its part.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::client::{Client, Reply};
use crate::collector::{Collector, Exported, Manner};
use crate::service::{Service, eventually, tollgate};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const KEY: &str = r#"{"key":"canary-key"}"#;

/// `serve` on a free port, which ends as soon as it is told to.
fn serve(args: &[&str]) -> Command {
    tollgate(&[&["serve", "--http", "127.0.0.1:0", "--drain-ms", "0"], args].concat())
}

/// One request with these headers.
fn ask(client: &mut Client, line: &str, headers: &[&str], body: &str) -> Reply {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    );
    client.send(request.as_bytes()).and_then(|()| client.reply()).expect("the service answers")
}

fn traceparent(flags: &str) -> String {
    format!("traceparent: 00-{TRACE}-{PARENT}-{flags}")
}

fn names(spans: &[Exported]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn what_operators_ask_is_exported_when_the_service_ends_at_the_latest() {
    let collector = Collector::start(Manner::Takes);
    let service = Service::start_as(
        serve(&["--node-id", "n1"])
            .env(ENDPOINT, collector.url())
            .env("OTEL_BSP_SCHEDULE_DELAY", "600000")
            .env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
            .env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=acme")
            .env("OTEL_SERVICE_NAME", "edge")
            .env("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=blue"),
    );
    assert_eq!(service.get("/api/counters?prefix=canary").status, 200);
    assert_eq!(service.get("/api/nothing/canary").status, 404);
    assert_eq!(service.get("/healthz").status, 200);
    assert_eq!(service.get("/metrics").status, 200);
    let (status, log) = service.stop();
    assert_eq!(status.code(), Some(0), "{log}");

    let posted = collector.posted();
    assert_eq!(posted.len(), 1, "{posted:?}");
    let head = posted[0].head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    assert!(head.contains("x-tenant: acme\r\n"), "{head}");
    assert!(!head.contains("content-encoding"), "{head}");
    let spans = collector.spans();
    assert_eq!(names(&spans), ["GET /api/counters", "GET"]);
    let told = pairs(&spans[0].attributes);
    let expected = [
        ("client.address", "127.0.0.1"),
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("http.route", "/api/counters"),
    ];
    assert_eq!(told, expected);
    assert_eq!((spans[0].kind, spans[0].parent.as_str(), spans[0].status), (2, "", 0));
    assert!(!spans[1].attributes.contains_key("http.route"), "a path that is not served is none");
    for (name, value) in [("service.name", "edge"), ("team", "blue"), ("service.instance.id", "n1")]
    {
        assert_eq!(spans[0].resource.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!String::from_utf8_lossy(&posted[0].body).contains("canary"));
}

#[test]
fn spans_do_not_wait_for_the_end() {
    let collector = Collector::start(Manner::Takes);
    let service = Service::start_as(
        serve(&[])
            .env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("{}/own/path", collector.url()))
            .env("OTEL_BSP_SCHEDULE_DELAY", "20"),
    );
    assert_eq!(service.get("/api/status").status, 200);
    eventually("the span is exported", || names(&collector.spans()) == ["GET /api/status"]);
    assert!(collector.posted()[0].head.starts_with("POST /own/path HTTP/1.1\r\n"));
    assert_eq!(collector.spans()[0].resource["service.name"], "tollgate");
    service.wait_for_log("traces are exported");
}

#[test]
fn a_decision_has_a_span_only_if_its_caller_traces_it() {
    let collector = Collector::start(Manner::Takes);
    let service = Service::start_as(serve(&[]).env(ENDPOINT, collector.url()));
    let mut client = service.client();
    let limits =
        r#"{"key":"canary-key","limits":[{"name":"canary-limit","limit":1,"window_ms":3600000}]}"#;
    for (line, flags, body) in [
        ("POST /check", None, KEY),
        ("POST /check", Some("00"), KEY),
        ("POST /check", Some("zz"), KEY),
        ("POST /check/batch", None, r#"{"requests":[]}"#),
        ("POST /check?canary=query", Some("01"), KEY),
        ("POST /check", Some("01"), limits),
        ("POST /check", Some("01"), limits),
        ("POST /peek", Some("01"), KEY),
        ("POST /refund", Some("01"), "{"),
        ("POST /check/batch", Some("01"), r#"{"requests":[]}"#),
        ("GET /check", Some("01"), ""),
    ] {
        let parent = flags.map(traceparent).unwrap_or_default();
        let headers: &[&str] = if parent.is_empty() { &[] } else { &[&parent] };
        ask(&mut client, line, headers, body);
    }
    service.stop();
    let spans = collector.spans();
    assert_eq!(
        names(&spans),
        [
            "POST /check",
            "POST /check",
            "POST /check",
            "POST /peek",
            "POST /refund",
            "POST /check/batch",
            "GET /check"
        ]
    );
    for span in &spans {
        assert_eq!((span.trace.as_str(), span.parent.as_str()), (TRACE, PARENT), "{span:?}");
    }
    let verdicts: Vec<_> = spans
        .iter()
        .map(|span| ["tollgate.rule", "tollgate.verdict"].map(|name| span.attributes.get(name)))
        .map(|told| told.map(|value| value.map_or("", String::as_str)))
        .collect();
    let (default, inline, none) = (["default", "allow"], ["inline", "allow"], ["", ""]);
    assert_eq!(verdicts, [default, inline, ["inline", "deny"], default, none, none, none]);
    let statuses: Vec<&str> =
        spans.iter().map(|span| span.attributes["http.response.status_code"].as_str()).collect();
    assert_eq!(statuses, ["200", "200", "200", "200", "400", "200", "405"]);
    for posted in collector.posted() {
        assert!(!String::from_utf8_lossy(&posted.body).contains("canary"));
    }
}

#[test]
fn all_decisions_have_one_if_that_is_asked_for() {
    for (args, variable) in [(&["--trace-decisions"][..], "false"), (&[], "true")] {
        let collector = Collector::start(Manner::Takes);
        let mut command = serve(args);
        command.env(ENDPOINT, collector.url()).env("TOLLGATE_TRACE_DECISIONS", variable);
        let service = Service::start_as(&mut command);
        service.check("k");
        assert_eq!(service.get("/healthz").status, 200);
        service.stop();
        let spans = collector.spans();
        assert_eq!(names(&spans), ["POST /check"], "{args:?}");
        assert_eq!(spans[0].parent, "");
    }
}

#[test]
fn nothing_is_exported_where_it_is_not_asked_for() {
    for variables in [
        &[("OTEL_SDK_DISABLED", "true")][..],
        &[("OTEL_TRACES_EXPORTER", "none")],
        &[("OTEL_TRACES_SAMPLER", "always_off")],
        &[("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0")],
        &[(ENDPOINT, "")],
    ] {
        let collector = Collector::start(Manner::Takes);
        let mut command = serve(&["--trace-decisions"]);
        command.env(ENDPOINT, collector.url()).envs(variables.iter().copied());
        let service = Service::start_as(&mut command);
        assert_eq!(service.get("/api/status").status, 200);
        ask(&mut service.client(), "POST /check", &[&traceparent("01")], KEY);
        let (status, log) = service.stop();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(collector.posted().is_empty(), "{variables:?}");
        assert!(!log.contains("WARN"), "{variables:?}: {log}");
    }
}

#[test]
fn without_a_variable_there_is_not_even_a_thread_for_it() {
    let has_thread = |service: &Service| {
        let threads = std::fs::read_dir(format!("/proc/{}/task", service.id())).unwrap();
        threads.filter_map(Result::ok).any(|thread| {
            let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            name.starts_with("OpenTelemetry")
        })
    };
    let without = Service::start_as(&mut serve(&["--trace-decisions"]));
    let asked = Service::start_as(serve(&[]).env("OTEL_TRACES_EXPORTER", "otlp"));
    // A thread names itself, once it runs.
    eventually("the test can tell", || has_thread(&asked));
    without.check("k");
    assert!(!has_thread(&without));
}

#[test]
fn what_cannot_be_followed_is_a_warning_and_the_service_serves() {
    for (name, value) in [
        (ENDPOINT, "https://canary.invalid"),
        (ENDPOINT, "http://user:canary@127.0.0.1:1"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_SAMPLER", "canary"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
    ] {
        let mut command = serve(&[]);
        command.env(ENDPOINT, "http://127.0.0.1:1").env(name, value);
        let service = Service::start_as(&mut command);
        assert_eq!(service.check("k")["allowed"], true);
        let (status, log) = service.stop();
        assert_eq!(status.code(), Some(0), "{log}");
        assert_eq!(log.matches("no traces").count(), 1, "{name}={value}: {log}");
        assert!(!log.contains("canary"), "{log}");
    }
}

/// Asks more often than the queue has places, with a collector that is of no use.
fn is_not_held_up_by(endpoint: &str) -> String {
    let mut command = serve(&["--trace-decisions"]);
    // Longer than any bound below: who waits for the collector is found out.
    command.env(ENDPOINT, endpoint).env("OTEL_EXPORTER_OTLP_TIMEOUT", "300000");
    command.env("OTEL_BSP_SCHEDULE_DELAY", "10").env("OTEL_BSP_MAX_QUEUE_SIZE", "256");
    let mut service = Service::start_as(&mut command);
    let mut client = service.client();
    let began = Instant::now();
    for _ in 0..2000 {
        assert_eq!(client.post("/check", r#"{"key":"k","cost":0}"#).status, 200);
    }
    assert_eq!(client.get("/api/status").status, 200);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    drop(client);
    let ending = Instant::now();
    service.signal("TERM");
    let (status, log) = service.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(ending.elapsed() < Duration::from_secs(30), "{:?}", ending.elapsed());
    assert!(log.lines().count() < 12, "it is told rarely: {log}");
    log
}

#[test]
fn a_collector_that_hangs_holds_up_nobody() {
    let collector = Collector::start(Manner::Hangs);
    let log = is_not_held_up_by(&collector.url());
    assert!(!collector.posted().is_empty(), "it was tried");
    assert!(log.contains("the last traces were not exported"), "{log}");
}

#[test]
fn a_collector_that_is_away_holds_up_nobody() {
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let log = is_not_held_up_by(&format!("http://{away}"));
    assert_eq!(log.matches("traces cannot be exported").count(), 1, "{log}");
    assert!(log.contains(&away.to_string()), "{log}");
}

#[test]
fn no_secret_is_in_the_log_or_in_a_span() {
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refusing = Collector::start(Manner::Refuses);
    let taking = Collector::start(Manner::Takes);
    for url in [refusing.url(), taking.url(), format!("http://{away}")] {
        let service = Service::start_as(
            serve(&["--trace-decisions", "--log-format", "json"])
                .env(ENDPOINT, &url)
                .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-header")
                .env("TOLLGATE_LOG", "trace")
                .env("TOLLGATE_ADMIN_TOKEN", "canary-admin-token-that-is-long-enough")
                .env("TOLLGATE_CHECK_TOKEN", "canary-check-token-that-is-long-enough"),
        );
        let mut client = service.client();
        for (line, token, status) in [
            ("GET /admin/external/clients/canary-client/limits", "admin", 404),
            ("GET /admin/external/clients/canary-client/limits", "wrong", 401),
            ("POST /check?q=canary-query", "check", 200),
            ("canary-method /api/status", "admin", 405),
        ] {
            let token = format!("authorization: Bearer canary-{token}-token-that-is-long-enough");
            assert_eq!(ask(&mut client, line, &[&token], KEY).status, status, "{line}");
        }
        let (_, log) = service.stop();
        assert!(!log.contains("canary"), "{url}: {log}");
    }
    assert!(refusing.posted()[0].head.contains("Bearer canary-header"), "it was really sent");
    let spans = taking.spans();
    let route = "/admin/external/clients/{id}/limits";
    assert_eq!(spans[0].name, format!("GET {route}"));
    assert_eq!(spans[0].attributes["http.route"], route);
    assert_eq!(spans[3].attributes["http.request.method"], "_OTHER");
    for posted in taking.posted() {
        assert!(!String::from_utf8_lossy(&posted.body).contains("canary"), "{spans:?}");
    }
}

#[test]
fn a_collector_that_comes_back_is_told_of() {
    let place = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let service = Service::start_as(
        serve(&[]).env(ENDPOINT, format!("http://{address}")).env("OTEL_BSP_SCHEDULE_DELAY", "20"),
    );
    service.get("/api/status");
    service.wait_for_log("traces cannot be exported");
    let collector = Collector::start_at(address);
    eventually("spans come again", || {
        service.get("/api/status");
        !collector.spans().is_empty()
    });
    service.wait_for_log("traces are exported again");
}
