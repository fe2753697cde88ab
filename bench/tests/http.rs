//! The HTTP benchmarks' parts in processes of their own. Nothing here depends on speed.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::post;
use tempfile::TempDir;
use tollgate_bench::http::constant;
use tollgate_bench::http::contender::Stage;
use tollgate_bench::http::report::Report;
use tollgate_bench::http::sample::Sample;
use tollgate_bench::http::scale::Scale;
use tollgate_bench::http::task::{Ask, Task};
use tollgate_bench::machine::Given;
use tollgate_bench::server::Cores;
use tollgate_bench::work::Work;

const CONSTANT: &str = env!("CARGO_BIN_EXE_axum_constant");
const LOAD: &str = env!("CARGO_BIN_EXE_http_load");
const BODY_BYTES: usize = 321;

const BLINK: Work =
    Work::Timed { warm_up: Duration::from_millis(20), window: Duration::from_millis(200) };

/// Serves for as long as the tests run.
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

fn load(address: SocketAddr, work: Work) -> Output {
    let ask = Ask {
        path: "/check".to_owned(),
        body: r#"{"key":"user:%k"}"#.to_owned(),
        keys: 1000,
        rules: 1,
    };
    let task = Task { address, server: process::id(), connections: 7, ask, work };
    Command::new(LOAD).args(task.arguments()).output().unwrap()
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_load_counts_what_the_server_counts() {
    let served = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&served);
    let router = constant::router("/check", BODY_BYTES);
    let address = serve(router.layer(middleware::from_fn(
        move |request: axum::extract::Request, next: middleware::Next| {
            counted.fetch_add(1, Relaxed);
            next.run(request)
        },
    )));
    for (work, exactly) in [(Work::Fill, Some(1000.0)), (BLINK, None)] {
        served.store(0, Relaxed);
        let output = load(address, work);
        assert!(output.status.success(), "{output:?}");
        let sample: Sample = String::from_utf8(output.stdout).unwrap().parse().unwrap();
        assert_eq!(sample.answered, f64::from(served.load(Relaxed)));
        assert_eq!(exactly.unwrap_or(sample.answered), sample.answered);
        assert_eq!(sample.body_bytes, f64::from(u32::try_from(BODY_BYTES).unwrap()));
        assert!(sample.per_second > 0.0 && sample.load_share >= 0.0, "{sample}");
        assert!(0.0 < sample.p50 && sample.p50 <= sample.p99 && sample.p99 <= sample.p999);
    }
}

#[test]
fn an_answer_that_is_not_the_right_one_ends_the_run_and_is_shown() {
    let failing = (StatusCode::INTERNAL_SERVER_ERROR, "the store is gone");
    let refusing = (StatusCode::OK, r#"{"allowed":false}"#);
    for (status, body) in [failing, refusing] {
        let answered = AtomicU32::new(0);
        let answer = Arc::new(move || {
            // Right at first: what comes later must not be overlooked either.
            let right = answered.fetch_add(1, Relaxed) < 100;
            if right { (StatusCode::OK, r#"{"allowed":true}"#) } else { (status, body) }
        });
        let address = serve(Router::new().route("/check", post(async move || answer())));
        let complaint = complaint(&load(address, BLINK));
        assert_eq!(complaint, format!("http_load: answered {} with: {body}\n", status.as_u16()));
    }
}

#[test]
fn a_server_that_is_not_there_ends_the_run() {
    let nobody = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    assert!(complaint(&load(nobody, BLINK)).contains("refused"));
}

/// A program of the name that does what the script says. Another process writes it: a file that this
/// one has open while a thread starts a process may not be run.
fn stand_in(directory: &Path, name: &str, script: &str) -> PathBuf {
    let path = directory.join(name);
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(&path).stdin(Stdio::piped());
    let mut install = install.spawn().unwrap();
    write!(install.stdin.take().unwrap(), "#!/bin/sh\n{script}\n").unwrap();
    assert!(install.wait().unwrap().success());
    path
}

/// The yardstick in place of both servers, once it has seen the arguments they would get.
fn stage(directory: &TempDir) -> Stage {
    let tollgate = format!(
        r#"[ "$1 $2 $3 $4" = "serve --http 127.0.0.1:0 --policy" ] && grep -q '^version: 1$' "$5" || exit 2
           exec {CONSTANT} 127.0.0.1:0 /check {BODY_BYTES}"#
    );
    let throttlecrab = format!(
        r#"[ "$1" = --version ] && echo throttlecrab-server 0.4.99 && exit
           [ "$1 $2 $3 $4" = "--http --http-host 127.0.0.1 --http-port" ] || exit 2
           exec {CONSTANT} "127.0.0.1:$5" /throttle 70"#
    );
    Stage {
        tollgate: stand_in(directory.path(), "tollgate", &tollgate),
        throttlecrab: stand_in(directory.path(), "throttlecrab-server", &throttlecrab),
        constant: CONSTANT.into(),
        load: LOAD.into(),
        cores: Cores::Any,
    }
}

#[test]
fn a_report_is_complete_and_every_figure_in_it_is_one() {
    let scale = Scale {
        warm_up: Duration::from_millis(10),
        window: Duration::from_millis(50),
        keys: 100,
        growth: &[10, 1000],
        rules: [1, 100],
        ..Scale::QUICK
    };
    let given = Given {
        date: "today".to_owned(),
        rustc: "rustc".to_owned(),
        command: "scripts/bench http --quick".to_owned(),
    };
    let directory = TempDir::new().unwrap();
    let report = Report::measure(scale, &stage(&directory), given).unwrap();
    for figure in report.figures() {
        // Time is counted in ticks of which so short a window may have none.
        assert!(figure.is_finite() && figure >= 0.0, "{figure} in\n{report}");
    }
    let text = report.to_string();
    assert!(text.contains("\n- Peers: throttlecrab-server 0.4.99, axum 0.8."), "{text}");
    assert!(text.contains("JSON of the same 321 bytes"), "{text}");
    for row in [
        "tollgate",
        "throttlecrab-server",
        "axum answering a constant",
        "× axum constant",
        "× throttlecrab-server",
        "10",
        "1 k",
        "no rule, the default limit",
        "1 rule",
        "100 rules",
        "1 rule with two limits",
    ] {
        let start = format!("| {row} | ");
        let rows = text.lines().filter(|line| line.starts_with(&start) && line.contains('–'));
        assert_eq!(rows.count(), 1, "{row}\n{text}");
    }
}
