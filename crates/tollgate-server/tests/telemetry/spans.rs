//! Traces: exported spans, data that is never exported, and failing collectors.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use tollgate_testkit::http2::SHOULD_RATE_LIMIT;

use crate::client::{Client, Reply};
use crate::collector::{Collector, CollectorMode, ExportedSpan};
use crate::grpc_client::{GRPC, GrpcClient, descriptor, grpc_address, request};
use crate::service::{Service, eventually, tollgate};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const KEY: &str = r#"{"key":"canary-key"}"#;

/// Returns a `serve` command on a free port that stops without draining.
fn serve(args: &[&str]) -> Command {
    tollgate(&[&["serve", "--http", "127.0.0.1:0", "--drain-ms", "0"], args].concat())
}

/// Sends one request with these headers.
fn send(client: &mut Client, line: &str, headers: &[&str], body: &str) -> Reply {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    );
    client.send(request.as_bytes()).and_then(|()| client.reply()).expect("a response")
}

fn traceparent(flags: &str) -> String {
    format!("traceparent: 00-{TRACE}-{PARENT}-{flags}")
}

fn names(spans: &[ExportedSpan]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn exports_management_requests_at_shutdown_at_the_latest() {
    let collector = Collector::start(CollectorMode::Accept);
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

    let requests = collector.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let head = requests[0].head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    assert!(head.contains("x-tenant: acme\r\n"), "{head}");
    assert!(!head.contains("content-encoding"), "{head}");
    let spans = collector.spans();
    assert_eq!(names(&spans), ["GET /api/counters", "GET"]);
    let attributes = pairs(&spans[0].attributes);
    let expected = [
        ("client.address", "127.0.0.1"),
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("http.route", "/api/counters"),
    ];
    assert_eq!(attributes, expected);
    assert_eq!((spans[0].kind, spans[0].parent.as_str(), spans[0].status), (2, "", 0));
    assert!(!spans[1].attributes.contains_key("http.route"), "an unknown path has no route");
    for (name, value) in [("service.name", "edge"), ("team", "blue"), ("service.instance.id", "n1")]
    {
        assert_eq!(spans[0].resource.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!String::from_utf8_lossy(&requests[0].body).contains("canary"));
}

#[test]
fn exports_spans_while_running() {
    let collector = Collector::start(CollectorMode::Accept);
    let service = Service::start_as(
        serve(&[])
            .env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("{}/own/path", collector.url()))
            .env("OTEL_BSP_SCHEDULE_DELAY", "20"),
    );
    assert_eq!(service.get("/api/status").status, 200);
    eventually("the span is exported", || names(&collector.spans()) == ["GET /api/status"]);
    assert!(collector.requests()[0].head.starts_with("POST /own/path HTTP/1.1\r\n"));
    assert_eq!(collector.spans()[0].resource["service.name"], "tollgate");
    service.wait_for_log("exporting traces");
}

#[test]
fn decision_has_a_span_only_if_the_caller_sampled_it() {
    let collector = Collector::start(CollectorMode::Accept);
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
        send(&mut client, line, headers, body);
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
        .map(|values| values.map(|value| value.map_or("", String::as_str)))
        .collect();
    let (default, inline, none) = (["default", "allow"], ["inline", "allow"], ["", ""]);
    assert_eq!(verdicts, [default, inline, ["inline", "deny"], default, none, none, none]);
    let statuses: Vec<&str> =
        spans.iter().map(|span| span.attributes["http.response.status_code"].as_str()).collect();
    assert_eq!(statuses, ["200", "200", "200", "200", "400", "200", "405"]);
    for request in collector.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains("canary"));
    }
}

#[test]
fn trace_decisions_gives_every_decision_a_span() {
    for (args, variable) in [(&["--trace-decisions"][..], "false"), (&[], "true")] {
        let collector = Collector::start(CollectorMode::Accept);
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
fn exports_nothing_when_disabled() {
    for variables in [
        &[("OTEL_SDK_DISABLED", "true")][..],
        &[("OTEL_TRACES_EXPORTER", "none")],
        &[("OTEL_TRACES_SAMPLER", "always_off")],
        &[("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0")],
        &[(ENDPOINT, "")],
    ] {
        let collector = Collector::start(CollectorMode::Accept);
        let mut command = serve(&["--trace-decisions"]);
        command.env(ENDPOINT, collector.url()).envs(variables.iter().copied());
        let service = Service::start_as(&mut command);
        assert_eq!(service.get("/api/status").status, 200);
        send(&mut service.client(), "POST /check", &[&traceparent("01")], KEY);
        let (status, log) = service.stop();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(collector.requests().is_empty(), "{variables:?}");
        assert!(!log.contains("WARN"), "{variables:?}: {log}");
    }
}

#[test]
fn starts_no_exporter_thread_unless_enabled() {
    let has_thread = |service: &Service| {
        let threads = std::fs::read_dir(format!("/proc/{}/task", service.id())).unwrap();
        threads.filter_map(Result::ok).any(|thread| {
            let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            name.starts_with("OpenTelemetry")
        })
    };
    let disabled = Service::start_as(&mut serve(&["--trace-decisions"]));
    let enabled = Service::start_as(serve(&[]).env("OTEL_TRACES_EXPORTER", "otlp"));
    // A thread sets its name once it runs.
    eventually("the exporter thread of the enabled service", || has_thread(&enabled));
    disabled.check("k");
    assert!(!has_thread(&disabled));
}

#[test]
fn invalid_settings_only_disable_traces() {
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

/// Sends more requests than the queue holds, with a broken collector, and returns the log.
fn serve_with_broken_collector(endpoint: &str) -> String {
    let mut command = serve(&["--trace-decisions"]);
    // Longer than any bound below, so that waiting for the collector fails the test.
    command.env(ENDPOINT, endpoint).env("OTEL_EXPORTER_OTLP_TIMEOUT", "300000");
    command.env("OTEL_BSP_SCHEDULE_DELAY", "10").env("OTEL_BSP_MAX_QUEUE_SIZE", "256");
    let mut service = Service::start_as(&mut command);
    let mut client = service.client();
    let start = Instant::now();
    for _ in 0..2000 {
        assert_eq!(client.post("/check", r#"{"key":"k","cost":0}"#).status, 200);
    }
    assert_eq!(client.get("/api/status").status, 200);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    drop(client);
    let stop = Instant::now();
    service.signal("TERM");
    let (status, log) = service.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(stop.elapsed() < Duration::from_secs(30), "{:?}", stop.elapsed());
    assert!(log.lines().count() < 12, "failures are logged rarely: {log}");
    log
}

#[test]
fn hanging_collector_delays_no_request() {
    let collector = Collector::start(CollectorMode::Hang);
    let log = serve_with_broken_collector(&collector.url());
    assert!(!collector.requests().is_empty(), "the service tried to export");
    assert!(log.contains("the last spans were not exported"), "{log}");
}

#[test]
fn unreachable_collector_delays_no_request() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let log = serve_with_broken_collector(&format!("http://{unused}"));
    assert_eq!(log.matches("trace export failed").count(), 1, "{log}");
    assert!(log.contains(&unused.to_string()), "{log}");
}

#[test]
fn log_and_spans_contain_no_secret() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let rejecting = Collector::start(CollectorMode::Reject);
    let accepting = Collector::start(CollectorMode::Accept);
    for url in [rejecting.url(), accepting.url(), format!("http://{unused}")] {
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
            assert_eq!(send(&mut client, line, &[&token], KEY).status, status, "{line}");
        }
        let (_, log) = service.stop();
        assert!(!log.contains("canary"), "{url}: {log}");
    }
    assert!(rejecting.requests()[0].head.contains("Bearer canary-header"), "the header was sent");
    let spans = accepting.spans();
    let route = "/admin/external/clients/{id}/limits";
    assert_eq!(spans[0].name, format!("GET {route}"));
    assert_eq!(spans[0].attributes["http.route"], route);
    assert_eq!(spans[3].attributes["http.request.method"], "_OTHER");
    for request in accepting.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains("canary"), "{spans:?}");
    }
}

#[test]
fn logs_when_the_collector_is_back() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let service = Service::start_as(
        serve(&[]).env(ENDPOINT, format!("http://{address}")).env("OTEL_BSP_SCHEDULE_DELAY", "20"),
    );
    service.get("/api/status");
    service.wait_for_log("trace export failed");
    let collector = Collector::start_at(address);
    eventually("an exported span", || {
        service.get("/api/status");
        !collector.spans().is_empty()
    });
    service.wait_for_log("trace export works again");
}

#[test]
fn grpc_call_has_a_span_if_the_caller_sampled_it() {
    let collector = Collector::start(CollectorMode::Accept);
    let service = Service::start_as(serve(&GRPC).env(ENDPOINT, collector.url()));
    let client = GrpcClient::connect(grpc_address(&service));
    let call = |domain: &str, flags: &str| {
        let mut request = tonic::Request::new(request(domain, [descriptor(&[("user", "canary")])]));
        let context = format!("00-{TRACE}-{PARENT}-{flags}").parse().expect("metadata");
        request.metadata_mut().insert("traceparent", context);
        client.call_with(request).is_ok()
    };
    assert!(call("canary", "00") && call("canary", "01") && !call("", "01"));
    drop(client);
    assert!(service.stop().0.success());
    let spans = collector.spans();
    assert_eq!(
        names(&spans),
        [format!("POST {SHOULD_RATE_LIMIT}"), format!("POST {SHOULD_RATE_LIMIT}")]
    );
    let of =
        |span: &ExportedSpan, name: &str| span.attributes.get(name).cloned().unwrap_or_default();
    let statuses: Vec<_> = spans.iter().map(|span| of(span, "http.response.status_code")).collect();
    assert_eq!(statuses, ["200", "400"]);
    assert_eq!(spans[0].parent, PARENT);
    assert!(spans[0].attributes.values().any(|value| value == "allow"), "{:?}", spans[0]);
    let text: Vec<_> = collector.requests().into_iter().flat_map(|request| request.body).collect();
    assert!(!String::from_utf8_lossy(&text).contains("canary"));
}
