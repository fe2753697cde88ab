//! Tests of the Redis benchmarks with real processes. No test depends on speed.

use std::time::Duration;

use tollgate_bench::load_mode::LoadMode;
use tollgate_bench::machine::RunInfo;
use tollgate_bench::redis::cluster_report::ClusterReport;
use tollgate_bench::redis::deployment::{Deployment, Programs};
use tollgate_bench::redis::limits::Limits;
use tollgate_bench::redis::method::Method;
use tollgate_bench::redis::report::Report;
use tollgate_bench::redis::scale::Scale;
use tollgate_bench::redis::task::RequestSpec;
use tollgate_bench::server::Cores;

const SHORT_RUN: LoadMode =
    LoadMode::Timed { warm_up: Duration::ZERO, window: Duration::from_millis(100) };

fn programs() -> Programs {
    let redis = std::env::var_os("TOLLGATE_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
    let load = env!("CARGO_BIN_EXE_redis_load").into();
    Programs { redis: redis.into(), cell: None, load, cores: Cores::Any }
}

#[test]
fn every_method_admits_exactly_the_burst() {
    let deployment = Deployment::start(programs()).unwrap();
    for method in [Method::Tollgate, Method::TollgateCached, Method::Multiplexed, Method::Pool] {
        let first = deployment.unused_keys(5);
        let requests = RequestSpec { keys: 5, first, limits: Limits::TokenBucket, burst: 2 };
        let sample = deployment.load(method, 7, requests, SHORT_RUN).unwrap();
        // The load fails if any key gets more or less than its limit admits.
        assert!(sample.allowed <= 10.0, "{method:?}: {sample}");
        assert!(sample.answered >= sample.allowed && sample.commands > 0.0, "{method:?}: {sample}");
    }
}

#[test]
fn fill_sends_one_request_per_key() {
    let deployment = Deployment::start(programs()).unwrap();
    for limits in Limits::ALL {
        let requests = RequestSpec {
            keys: 500,
            first: deployment.unused_keys(500),
            limits,
            burst: limits.ample_burst(),
        };
        let sample = deployment.load(Method::Tollgate, 7, requests, LoadMode::Fill).unwrap();
        assert_eq!([sample.answered, sample.allowed], [500.0; 2], "{limits:?}");
    }
}

#[test]
fn wrong_decision_aborts_the_run_with_details() {
    let deployment = Deployment::start(programs()).unwrap();
    for method in [Method::Tollgate, Method::Multiplexed] {
        let requests = RequestSpec {
            keys: 1,
            first: deployment.unused_keys(1),
            limits: Limits::TokenBucket,
            burst: 2,
        };
        deployment.load(method, 3, requests, SHORT_RUN).unwrap();
        // The first run has exhausted the limit; the second run expects a full one.
        let error = deployment.load(method, 3, requests, SHORT_RUN).unwrap_err().to_string();
        let rest = format!("{}: redis_load: 0 of ", method.name());
        assert!(
            error.starts_with(&rest) && error.ends_with(" requests were allowed; expected 2"),
            "{error}"
        );
    }
    let other = RequestSpec { keys: 1, first: 0, limits: Limits::FixedWindow, burst: 2 };
    let error = deployment.load(Method::Pool, 1, other, SHORT_RUN).unwrap_err().to_string();
    assert!(error.ends_with("fixed_window is only supported with tollgate"), "{error}");
}

const SHORT_SCALE: Scale = Scale {
    rounds: 1,
    warm_up: Duration::from_millis(100),
    window: Duration::from_millis(100),
    callers: [4, 8],
    keys: 1000,
    requests: [1000, 2],
    logs: 2,
};

fn run_info() -> RunInfo {
    RunInfo {
        date: "today".to_owned(),
        rustc: "rustc".to_owned(),
        command: "scripts/bench redis --quick".to_owned(),
    }
}

#[test]
fn cluster_spreads_keys_and_admits_exactly_the_burst() {
    let deployment = Deployment::cluster(programs(), 3).unwrap();
    let all = [Limits::TokenBucket, Limits::TwoLimits, Limits::TwoSubjects];
    let requests =
        |limits| RequestSpec { keys: 50, first: deployment.unused_keys(50), limits, burst: 2 };
    for limits in all {
        let sample =
            deployment.load(Method::Tollgate, 7, requests(limits), LoadMode::Fill).unwrap();
        assert_eq!(sample.allowed, 50.0, "{limits:?}");
    }
    // 50 keys of one bucket and 200 of two buckets: about a third is on this node.
    let [here, _] = deployment.admin().unwrap().keys().unwrap();
    assert!((30..=130).contains(&here), "{here} of 250 keys");
    for limits in all {
        let sample = deployment.load(Method::Tollgate, 7, requests(limits), SHORT_RUN).unwrap();
        assert!(sample.allowed <= 100.0, "{limits:?}: {sample}");
    }
}

#[test]
fn two_subjects_take_two_cluster_calls_and_two_limits_one() {
    let deployment = Deployment::cluster(programs(), 3).unwrap();
    let [one_slot, two_slots] = [Limits::TwoLimits, Limits::TwoSubjects].map(|limits| {
        // Measured with used keys and loaded scripts.
        let requests = RequestSpec {
            keys: 200,
            first: deployment.unused_keys(200),
            limits,
            burst: limits.ample_burst(),
        };
        deployment.load(Method::Tollgate, 1, requests, LoadMode::Fill).unwrap();
        deployment.load(Method::Tollgate, 1, requests, LoadMode::Fill).unwrap().commands
    });
    // One call, the time, a read and a write per key: 6 commands on one node, 2 × 4 on two. A third of the
    // pairs share a node.
    assert!(one_slot < 1300.0 && two_slots > one_slot + 200.0, "{one_slot} and {two_slots}");
}

#[test]
fn cluster_report_is_complete_with_valid_figures() {
    let report = ClusterReport::measure(SHORT_SCALE, &programs(), run_info()).unwrap();
    for figure in report.figures() {
        assert!(figure.is_finite() && figure >= 0.0, "{figure} in\n{report}");
    }
    let text = report.to_string();
    let starting = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    for (row, times) in [
        ("4 callers, one server", 1),
        // Figures and ratios.
        ("8 callers, 1 primary", 2),
        ("8 callers, 3 primaries", 2),
        ("1 caller, one slot", 1),
        ("4 callers, two slots", 1),
    ] {
        assert_eq!(starting(&format!("| {row} | ")), times, "{row}\n{text}");
    }
}

#[test]
fn report_is_complete_with_valid_figures() {
    let report = Report::measure(SHORT_SCALE, programs(), run_info()).unwrap();
    for figure in report.figures() {
        // CPU time may be 0: a short window can be less than one clock tick.
        assert!(figure.is_finite() && figure >= 0.0, "{figure} in\n{report}");
    }
    let text = report.to_string();
    assert!(text.contains(", redis 1.8.1 (client)\n"), "{text}");
    let starting = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    for (row, times) in [
        // Many keys and one key; figures and ratios.
        ("4 callers, tollgate", 4),
        ("8 callers, EVALSHA per decision, one connection", 2),
        ("8 callers, EVALSHA per decision, pool", 4),
        ("EVALSHA of return 1, pipelines of 16", 1),
        ("redis-benchmark, PING", 1),
        ("tollgate, refusal cache", 1),
        ("sliding window", 1),
        ("two limits", 1),
        ("tollgate, token bucket", 1),
        ("hash of two fields", 1),
        ("1000", 1),
    ] {
        assert_eq!(starting(&format!("| {row} | ")), times, "{row}\n{text}");
    }
}
