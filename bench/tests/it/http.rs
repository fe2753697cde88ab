//! Tests of the HTTP benchmarks with real processes. No test depends on speed.

use std::net::{SocketAddr, TcpListener};
use std::process::{self, Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::post;
use tempfile::TempDir;
use tollgate_bench::http::candidate::Programs;
use tollgate_bench::http::constant;
use tollgate_bench::http::report::Report;
use tollgate_bench::http::scale::Scale;
use tollgate_bench::load::sample::Sample;
use tollgate_bench::load::task::{RequestSpec, Task};
use tollgate_bench::load_mode::LoadMode;
use tollgate_bench::server::Cores;

use crate::fake_program::{fake_program, run_info};

const CONSTANT: &str = env!("CARGO_BIN_EXE_axum_constant");
const LOAD: &str = env!("CARGO_BIN_EXE_load");
const BODY_BYTES: usize = 321;

const SHORT_RUN: LoadMode =
    LoadMode::Timed { warm_up: Duration::from_millis(20), window: Duration::from_millis(200) };

/// Serves the router until the test process exits.
fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await
        })
    });
    address
}

fn load(address: SocketAddr, mode: LoadMode) -> Output {
    let protocol = ["http", "/check", r#"{"key":"user:<key-no>"}"#].map(str::to_owned).to_vec();
    let requests = RequestSpec { protocol, keys: 1000, rules: 1 };
    let task =
        Task { address, server: process::id(), connections: 7, in_flight: 1, requests, mode };
    Command::new(LOAD).args(task.arguments()).output().unwrap()
}

fn message(output: &Output) -> String {
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn load_and_server_count_the_same_requests() {
    let served = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&served);
    let router = constant::router("/check", BODY_BYTES);
    let address = serve(router.layer(middleware::from_fn(
        move |request: axum::extract::Request, next: middleware::Next| {
            counted.fetch_add(1, Relaxed);
            next.run(request)
        },
    )));
    for (mode, exactly) in [(LoadMode::Fill, Some(1000.0)), (SHORT_RUN, None)] {
        served.store(0, Relaxed);
        let output = load(address, mode);
        assert!(output.status.success(), "{output:?}");
        let sample: Sample = String::from_utf8(output.stdout).unwrap().parse().unwrap();
        assert_eq!(sample.answered, f64::from(served.load(Relaxed)));
        assert_eq!(exactly.unwrap_or(sample.answered), sample.answered);
        assert_eq!(sample.payload_bytes, f64::from(u32::try_from(BODY_BYTES).unwrap()));
        assert!(sample.per_second > 0.0 && sample.load_share >= 0.0, "{sample}");
        assert!(0.0 < sample.p50 && sample.p50 <= sample.p99 && sample.p99 <= sample.p999);
    }
}

#[test]
fn unexpected_response_aborts_the_run_with_its_body() {
    let failing = (StatusCode::INTERNAL_SERVER_ERROR, "store unavailable");
    let refusing = (StatusCode::OK, r#"{"allowed":false}"#);
    for (status, body) in [failing, refusing] {
        let answered = AtomicU32::new(0);
        let response = Arc::new(move || {
            // The first responses are correct: later ones must be checked too.
            let right = answered.fetch_add(1, Relaxed) < 100;
            if right { (StatusCode::OK, r#"{"allowed":true}"#) } else { (status, body) }
        });
        let address = serve(Router::new().route("/check", post(async move || response())));
        // A fill sends more than 100 requests, also on a slow machine.
        let message = message(&load(address, LoadMode::Fill));
        assert_eq!(message, format!("load: unexpected response {}: {body}\n", status.as_u16()));
    }
}

#[test]
fn refused_connection_aborts_the_run() {
    let closed_port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    assert!(message(&load(closed_port, SHORT_RUN)).contains("refused"));
}

/// Replaces all servers with the baseline server, after a check of their arguments.
fn programs(directory: &TempDir) -> Programs {
    let tollgate = format!(
        r#"[ "$1 $2 $3 $4" = "serve --http 127.0.0.1:0 --policy" ] && grep -q '^version: 1$' "$5" || exit 2
           exec {CONSTANT} 127.0.0.1:0 /check {BODY_BYTES}"#
    );
    let throttlecrab = format!(
        r#"[ "$1" = --version ] && echo throttlecrab-server 0.4.99 && exit
           [ "$1 $2 $3 $4" = "--http --http-host 127.0.0.1 --http-port" ] || exit 2
           exec {CONSTANT} "127.0.0.1:$5" /throttle 70"#
    );
    let limitador = format!(
        r#"[ "$1" = --version ] && echo limitador 0.14.99 && exit
           [ "$1 $2 $3" = "--http 127.0.0.1:0 bench" ] || exit 2
           exec {CONSTANT} 127.0.0.1:0 /check_and_report 16"#
    );
    Programs {
        tollgate: fake_program(directory.path(), "tollgate", &tollgate),
        throttlecrab: fake_program(directory.path(), "throttlecrab-server", &throttlecrab),
        limitador: fake_program(directory.path(), "limitador_rls", &limitador),
        constant: CONSTANT.into(),
        load: LOAD.into(),
        cores: Cores::Any,
    }
}

#[test]
fn report_is_complete_with_valid_figures() {
    let scale = Scale {
        warm_up: Duration::from_millis(10),
        window: Duration::from_millis(50),
        keys: 100,
        key_counts: &[10, 1000],
        rules: [1, 100],
        ..Scale::QUICK
    };
    let directory = TempDir::new().unwrap();
    let report = Report::measure(scale, &programs(&directory), run_info("http")).unwrap();
    for figure in report.figures() {
        // CPU time may be 0: a short window can be less than one clock tick.
        assert!(figure.is_finite() && figure >= 0.0, "{figure} in\n{report}");
    }
    let text = report.to_string();
    assert!(
        text.contains("\n- Peers: throttlecrab-server 0.4.99, limitador 0.14.99, axum 0.8."),
        "{text}"
    );
    assert!(text.contains("JSON of the same 321 bytes"), "{text}");
    for row in [
        "tollgate",
        "throttlecrab-server",
        "limitador on axum",
        "axum, constant response",
        "× limitador",
        "× axum constant",
        "× throttlecrab-server",
        "10",
        "1 k",
        "no rules, default limit",
        "1 rule",
        "100 rules",
        "1 rule with two limits",
    ] {
        let start = format!("| {row} | ");
        let rows = text.lines().filter(|line| line.starts_with(&start) && line.contains('–'));
        assert_eq!(rows.count(), 1, "{row}\n{text}");
    }
}
