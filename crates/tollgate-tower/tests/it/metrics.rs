//! Metrics, read from a real Prometheus recorder.

use std::convert::Infallible;
use std::time::Duration;

use ::metrics::with_local_recorder;
use http::{Request, Response, StatusCode};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tollgate::{FallbackStore, Limiter, MemoryStore, Policy, Store};
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_tower::metrics::{MetricsObserver, record_store_event};
use tollgate_tower::outbound::{Limiters, NamedLimiter};
use tollgate_tower::{Header, RateLimitLayer};
use tower::{Layer, ServiceExt, service_fn};

use crate::outbound_fixture::{SECOND, memory, per_second};

const POLICY: &str = "
version: 1
rules:
  - { name: api, match: { path: /api/** }, limits: [2/min], next: { limits: [1/min] } }
  - { name: trial, match: { path: /trial }, limits: [1/min], mode: shadow }
  - { name: pay, match: { path: /pay }, limits: [2/min], on_store_loss: deny }
";

fn recorder() -> (PrometheusRecorder, PrometheusHandle) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    (recorder, handle)
}

fn policy() -> Policy {
    Policy::from_yaml("policy.yaml", POLICY, Policy::builtin_limit()).unwrap()
}

/// Runs the future on a current-thread runtime with this recorder.
fn run<T>(recorder: &PrometheusRecorder, work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    with_local_recorder(recorder, || runtime.block_on(work))
}

/// Sends requests of the client `secret-client` through a layer and returns their statuses.
async fn send<S: Store + 'static>(
    limiter: Limiter<S, MetricsObserver>,
    paths: &[&str],
) -> Vec<u16> {
    let client = Header::from_static("x-client-id");
    let layer = RateLimitLayer::builder(limiter).fact("client", client).build();
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, Infallible>(Response::new(String::new()))
    }));
    let mut statuses = Vec::new();
    for path in paths {
        let request = Request::get(*path).header("x-client-id", "secret-client").body(()).unwrap();
        statuses.push(service.clone().oneshot(request).await.unwrap().status().as_u16());
    }
    statuses
}

#[track_caller]
fn assert_metrics(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "missing {line} in\n{text}");
    }
}

#[test]
fn observer_records_decisions_of_the_layer() {
    let (recorder, handle) = recorder();
    let statuses = run(&recorder, async {
        let observer = MetricsObserver::for_memory();
        let limiter = Limiter::with_observer(MemoryStore::new(), policy(), observer);
        send(limiter, &["/api/a", "/api/b", "/api/c", "/trial", "/trial", "/other"]).await
    });
    assert_eq!(statuses, [200, 200, 429, 200, 200, 200]);
    let text = handle.render();
    assert_metrics(
        &text,
        &[
            "# TYPE ratelimiter_requests_checked_total counter",
            r#"ratelimiter_requests_checked_total{result="allowed"} 5"#,
            r#"ratelimiter_requests_checked_total{result="blocked"} 1"#,
            "ratelimiter_check_duration_seconds_count 6",
            r#"rate_limit_rejections_total{reason="local_exhausted"} 1"#,
            r#"rate_limit_tokens_remaining{scope="route"} 0"#,
            r#"rate_limit_tokens_remaining{scope="global"} 99"#,
            r#"tollgate_rule_checks_total{rule="api",result="allowed"} 2"#,
            r#"tollgate_rule_checks_total{rule="api",result="refused"} 1"#,
            r#"tollgate_would_refuse_total{rule="api",trial="next"} 2"#,
            r#"tollgate_would_refuse_total{rule="trial",trial="shadow"} 1"#,
        ],
    );
    assert!(!text.contains("secret-client"), "labels contain no keys:\n{text}");
}

#[test]
fn counters_start_at_zero_and_gauges_are_absent() {
    let (recorder, handle) = recorder();
    run(&recorder, async {
        let observer = MetricsObserver::for_redis();
        drop(Limiter::with_observer(MemoryStore::new(), policy(), observer));
    });
    let text = handle.render();
    assert_metrics(
        &text,
        &[
            r#"ratelimiter_requests_checked_total{result="allowed"} 0"#,
            r#"ratelimiter_requests_checked_total{result="blocked"} 0"#,
            r#"rate_limit_rejections_total{reason="local_exhausted"} 0"#,
            r#"rate_limit_rejections_total{reason="distributed_exhausted"} 0"#,
            r#"rate_limit_rejections_total{reason="backend_error"} 0"#,
            "rate_limit_backend_errors_total 0",
            r#"rate_limit_shadow_divergence_total{rule="default"} 0"#,
            r#"tollgate_degraded_decisions_total{by="local"} 0"#,
        ],
    );
    assert!(!text.contains("rate_limit_tokens_remaining{"), "{text}");
}

#[test]
fn refusals_by_redis_are_distributed() {
    let (recorder, handle) = recorder();
    run(&recorder, async {
        let observer = MetricsObserver::for_redis();
        let limiter = Limiter::with_observer(MemoryStore::new(), policy(), observer);
        send(limiter, &["/api/a"; 3]).await
    });
    let line = r#"rate_limit_rejections_total{reason="distributed_exhausted"} 1"#;
    assert_metrics(&handle.render(), &[line]);
}

#[test]
fn store_failures_are_recorded() {
    let (recorder, handle) = recorder();
    let statuses = run(&recorder, async {
        let store = FaultyStore::new(MemoryStore::new());
        store.set(StoreFault::Unreachable);
        let store = FallbackStore::builder(store).on_event(|event| record_store_event(&event));
        let observer = MetricsObserver::for_redis();
        let limiter = Limiter::with_observer(store.build(), policy(), observer);
        send(limiter, &["/pay", "/api/a", "/api/a", "/api/a", "/api/a"]).await
    });
    assert_eq!(statuses, [503, 200, 200, 429, 429]);
    let text = handle.render();
    assert_metrics(
        &text,
        &[
            r#"rate_limit_rejections_total{reason="backend_error"} 1"#,
            r#"rate_limit_rejections_total{reason="local_exhausted"} 2"#,
            r#"tollgate_degraded_decisions_total{by="deny"} 1"#,
            r#"tollgate_degraded_decisions_total{by="local"} 4"#,
            "rate_limit_backend_errors_total 5",
            "tollgate_breaker_state 1",
        ],
    );
}

#[test]
fn store_errors_without_fallback_are_recorded() {
    let (recorder, handle) = recorder();
    let statuses = run(&recorder, async {
        let store = FaultyStore::new(MemoryStore::new());
        store.set(StoreFault::Unreachable);
        let limiter = Limiter::with_observer(store, policy(), MetricsObserver::for_redis());
        send(limiter, &["/api/a", "/api/b"]).await
    });
    assert_eq!(statuses, [StatusCode::OK; 2].map(|status| status.as_u16()));
    let text = handle.render();
    assert_metrics(
        &text,
        &[
            "rate_limit_backend_errors_total 2",
            "ratelimiter_check_duration_seconds_count 2",
            r#"ratelimiter_requests_checked_total{result="allowed"} 0"#,
        ],
    );
}

#[test]
fn outbound_calls_and_waits_are_recorded() {
    let (recorder, handle) = recorder();
    run(&recorder, async {
        let limits = per_second(1).named("igdb").unwrap();
        let limiter = NamedLimiter::builder(memory(), limits).record_metrics().build();
        limiter.acquire().await.unwrap();
        limiter.try_acquire().await.unwrap_err();
        limiter.acquire().await.unwrap();
        limiter.acquire().await.unwrap();
        let mean = limiter.counts().mean_wait;
        assert!((SECOND..SECOND + Duration::from_millis(5)).contains(&mean), "{mean:?}");
    });
    let text = handle.render();
    assert_metrics(
        &text,
        &[
            r#"tollgate_outbound_calls_total{limiter="igdb",result="acquired"} 3"#,
            r#"tollgate_outbound_calls_total{limiter="igdb",result="refused"} 1"#,
            r#"tollgate_outbound_calls_total{limiter="igdb",result="error"} 0"#,
            r#"tollgate_outbound_wait_seconds_count{limiter="igdb"} 2"#,
        ],
    );
    let sum = text.lines().find_map(|line| {
        line.strip_prefix(r#"tollgate_outbound_wait_seconds_sum{limiter="igdb"} "#)
    });
    let mean = sum.unwrap().parse::<f64>().unwrap() / 2.0;
    assert!((1.0..1.005).contains(&mean), "{mean}");
    assert!(!text.contains("igdb:api"), "labels contain no keys:\n{text}");
}

#[test]
fn registry_records_all_limiters() {
    let (recorder, handle) = recorder();
    run(&recorder, async {
        let limiters = Limiters::builder(memory()).presets().record_metrics().build();
        limiters.get("tmdb").unwrap().acquire().await.unwrap();
    });
    assert_metrics(
        &handle.render(),
        &[
            r#"tollgate_outbound_calls_total{limiter="tmdb",result="acquired"} 1"#,
            r#"tollgate_outbound_calls_total{limiter="spotify",result="acquired"} 0"#,
        ],
    );
}
