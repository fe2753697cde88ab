//! The Redis benchmarks' parts in processes of their own. Nothing here depends on speed.

use std::time::Duration;

use tollgate_bench::machine::Given;
use tollgate_bench::redis::cluster_report::ClusterReport;
use tollgate_bench::redis::limits::Limits;
use tollgate_bench::redis::report::Report;
use tollgate_bench::redis::scale::Scale;
use tollgate_bench::redis::stage::{Programs, Stage};
use tollgate_bench::redis::task::Ask;
use tollgate_bench::redis::way::Way;
use tollgate_bench::server::Cores;
use tollgate_bench::work::Work;

const BLINK: Work = Work::Timed { warm_up: Duration::ZERO, window: Duration::from_millis(100) };

fn programs() -> Programs {
    let redis = std::env::var_os("TOLLGATE_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
    let load = env!("CARGO_BIN_EXE_redis_load").into();
    Programs { redis: redis.into(), cell: None, load, cores: Cores::Any }
}

#[test]
fn every_way_admits_exactly_what_the_limit_does() {
    let stage = Stage::start(programs()).unwrap();
    for way in [Way::Tollgate, Way::Remembering, Way::Multiplexed, Way::Pool] {
        let first = stage.fresh(5);
        let ask = Ask { keys: 5, first, limits: Limits::TokenBucket, burst: 2 };
        let sample = stage.load(way, 7, ask, BLINK).unwrap();
        // Had a key that asked got more or less than its limit admits, the load would have ended in an error.
        assert!(sample.allowed <= 10.0, "{way:?}: {sample}");
        assert!(sample.answered >= sample.allowed && sample.commands > 0.0, "{way:?}: {sample}");
    }
}

#[test]
fn every_key_asks_once_where_keys_are_filled_in() {
    let stage = Stage::start(programs()).unwrap();
    for limits in Limits::ALL {
        let ask = Ask { keys: 500, first: stage.fresh(500), limits, burst: limits.plenty() };
        let sample = stage.load(Way::Tollgate, 7, ask, Work::Fill).unwrap();
        assert_eq!([sample.answered, sample.allowed], [500.0; 2], "{limits:?}");
    }
}

#[test]
fn an_answer_that_is_not_the_right_one_ends_the_run_and_is_told() {
    let stage = Stage::start(programs()).unwrap();
    for way in [Way::Tollgate, Way::Multiplexed] {
        let ask = Ask { keys: 1, first: stage.fresh(1), limits: Limits::TokenBucket, burst: 2 };
        stage.load(way, 3, ask, BLINK).unwrap();
        // What the limit had is gone, which the second run does not know.
        let error = stage.load(way, 3, ask, BLINK).unwrap_err().to_string();
        let rest = format!("{}: redis_load: 0 of ", way.name());
        assert!(error.starts_with(&rest) && error.ends_with(" passed, not 2"), "{error}");
    }
    let other = Ask { keys: 1, first: 0, limits: Limits::FixedWindow, burst: 2 };
    let error = stage.load(Way::Pool, 1, other, BLINK).unwrap_err().to_string();
    assert!(error.ends_with("only tollgate is asked about fixed_window"), "{error}");
}

const BRIEF: Scale = Scale {
    rounds: 1,
    warm_up: Duration::from_millis(100),
    window: Duration::from_millis(100),
    callers: [4, 8],
    keys: 1000,
    requests: [1000, 2],
    logs: 2,
};

fn given() -> Given {
    Given {
        date: "today".to_owned(),
        rustc: "rustc".to_owned(),
        command: "scripts/bench redis --quick".to_owned(),
    }
}

#[test]
fn the_nodes_of_a_cluster_share_the_keys_and_admit_exactly_what_the_limit_does() {
    let stage = Stage::cluster(programs(), 3).unwrap();
    let all = [Limits::TokenBucket, Limits::TwoLimits, Limits::TwoSubjects];
    let ask = |limits| Ask { keys: 50, first: stage.fresh(50), limits, burst: 2 };
    for limits in all {
        let sample = stage.load(Way::Tollgate, 7, ask(limits), Work::Fill).unwrap();
        assert_eq!(sample.allowed, 50.0, "{limits:?}");
    }
    // Fifty keys of one bucket, and a hundred of two: about a third of them is here.
    let [here, _] = stage.inside().unwrap().keys().unwrap();
    assert!((30..=130).contains(&here), "{here} of 250 keys");
    for limits in all {
        let sample = stage.load(Way::Tollgate, 7, ask(limits), BLINK).unwrap();
        assert!(sample.allowed <= 100.0, "{limits:?}: {sample}");
    }
}

#[test]
fn a_plan_of_two_subjects_is_two_calls_on_a_cluster_and_one_of_two_limits_is_one() {
    let stage = Stage::cluster(programs(), 3).unwrap();
    let [within, across] = [Limits::TwoLimits, Limits::TwoSubjects].map(|limits| {
        // Of keys that have asked before, by programs that are known.
        let ask = Ask { keys: 200, first: stage.fresh(200), limits, burst: limits.plenty() };
        stage.load(Way::Tollgate, 1, ask, Work::Fill).unwrap();
        stage.load(Way::Tollgate, 1, ask, Work::Fill).unwrap().commands
    });
    // A call, the time, one read, a write for each key: five commands, and twice four.
    assert!(within < 1100.0 && across > 1550.0, "{within} and {across}");
}

#[test]
fn a_clusters_report_is_complete_and_every_figure_in_it_is_one() {
    let report = ClusterReport::measure(BRIEF, &programs(), given()).unwrap();
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
fn a_report_is_complete_and_every_figure_in_it_is_one() {
    let report = Report::measure(BRIEF, programs(), given()).unwrap();
    for figure in report.figures() {
        // Time is counted in ticks of which so short a window may have none.
        assert!(figure.is_finite() && figure >= 0.0, "{figure} in\n{report}");
    }
    let text = report.to_string();
    assert!(text.contains(", redis 1.8.1 (client)\n"), "{text}");
    let starting = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    for (row, times) in [
        // Many keys and one; figures and ratios.
        ("4 callers, tollgate", 4),
        ("8 callers, EVALSHA each, one connection", 2),
        ("8 callers, EVALSHA each, a pool", 4),
        ("EVALSHA of the same, pipelines of 16", 1),
        ("redis-benchmark, PING", 1),
        ("tollgate, remembering refusals", 1),
        ("sliding window", 1),
        ("two limits", 1),
        ("tollgate, token bucket", 1),
        ("hash of two fields", 1),
        ("1000", 1),
    ] {
        assert_eq!(starting(&format!("| {row} | ")), times, "{row}\n{text}");
    }
}
