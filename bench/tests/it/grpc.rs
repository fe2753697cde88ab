//! Tests of the gRPC benchmarks with real processes. No test depends on speed.

use std::time::Duration;

use tempfile::TempDir;
use tollgate_bench::grpc::candidate::Programs;
use tollgate_bench::grpc::report::Report;
use tollgate_bench::load::candidate::Candidate;
use tollgate_bench::load::runner::Runner;
use tollgate_bench::load::scale::Scale;
use tollgate_bench::server::Cores;

use crate::fake_program::{fake_program, run_info};

const CONSTANT: &str = env!("CARGO_BIN_EXE_grpc_constant");
const LOAD: &str = env!("CARGO_BIN_EXE_load");

const SHORT_SCALE: Scale = Scale {
    rounds: 1,
    warm_up: Duration::from_millis(10),
    window: Duration::from_millis(200),
    connections: 7,
    keys: 100,
};

fn runner() -> Runner {
    Runner::new(LOAD.into(), Cores::Any, &SHORT_SCALE)
}

/// Replaces all servers with the baseline server, after a check of their arguments. It does not know the calls of
/// throttlecrab.
fn programs(directory: &TempDir) -> Programs {
    let tollgate = format!(
        r#"[ "$1 $2 $3 $4 $5 $6" = "serve --http 127.0.0.1:0 --grpc 127.0.0.1:0 --policy" ] || exit 2
           grep -q '^version: 1$' "$7" || exit 2
           exec {CONSTANT} 127.0.0.1:0 080112020801"#
    );
    let limitador = format!(
        r#"[ "$*" = "127.0.0.1:0 edge 1000000 3600 descriptors[0].client 100" ] || exit 2
           exec {CONSTANT} 127.0.0.1:0 0801"#
    );
    let throttlecrab = format!(
        r#"[ "$1 $2 $3 $4" = "--grpc --grpc-host 127.0.0.1 --grpc-port" ] || exit 2
           exec {CONSTANT} "127.0.0.1:$5" 0801"#
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
fn streams_get_one_response_per_call() {
    let directory = TempDir::new().unwrap();
    let tollgate = programs(&directory).tollgate(100).unwrap();
    for streams in [1, 10] {
        let filled = runner().fill(&tollgate, streams).unwrap();
        assert_eq!([filled.answered, filled.payload_bytes], [100.0, 6.0], "{streams} streams");
        let [figures] = runner().rounds([&tollgate], streams).unwrap();
        assert!(figures.per_second.min() > 0.0 && figures.p50.max() <= figures.p999.max());
    }
}

#[test]
fn failed_call_aborts_the_run() {
    let directory = TempDir::new().unwrap();
    let throttlecrab = programs(&directory).throttlecrab(100).unwrap();
    let error = runner().fill(&throttlecrab, 10).unwrap_err().to_string();
    let start = "grpc /throttlecrab.RateLimiter/Throttle: load: the call failed; ";
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn over_limit_aborts_the_run() {
    let directory = TempDir::new().unwrap();
    let script = format!("exec {CONSTANT} 127.0.0.1:0 0802");
    let limitador = fake_program(directory.path(), "over_limit", &script);
    let over_limit = Programs { limitador, ..programs(&directory) }.limitador(100).unwrap();
    let error = runner().fill(&over_limit, 1).unwrap_err().to_string();
    assert!(error.ends_with("load: unexpected response: [08, 02]"), "{error}");
}

#[test]
fn report_is_complete_with_valid_figures() {
    let directory = TempDir::new().unwrap();
    let programs = programs(&directory);
    let tollgate = programs.tollgate(100).unwrap();
    let constant = programs.constant(&tollgate, 100).unwrap();
    let limitador = programs.limitador(100).unwrap();
    let throttlecrab =
        Candidate { requests: limitador.requests.clone(), ..programs.throttlecrab(100).unwrap() };
    let servers = [&tollgate, &throttlecrab, &limitador, &constant];
    let peers = vec!["a peer 1.2".to_owned()];
    let report = Report::compare(SHORT_SCALE, &runner(), servers, peers, run_info("grpc")).unwrap();
    for figure in report.figures() {
        // CPU time may be 0: a short window can be less than one clock tick.
        assert!(figure.is_finite() && figure >= 0.0, "{figure} in\n{report}");
    }
    let text = report.to_string();
    assert!(text.contains("\n- Peers: a peer 1.2\n"), "{text}");
    assert!(text.contains("a response of tollgate (6 bytes; "), "{text}");
    for (row, count) in [
        ("tollgate", 2),
        ("throttlecrab-server", 2),
        ("limitador on tonic", 2),
        ("tonic, constant response", 2),
        ("× throttlecrab-server, 1 stream", 1),
        ("× limitador, 1 stream", 1),
        ("× tonic constant, 1 stream", 1),
        ("× throttlecrab-server, 10 streams", 1),
        ("× limitador, 10 streams", 1),
        ("× tonic constant, 10 streams", 1),
    ] {
        let start = format!("| {row} | ");
        let rows = text.lines().filter(|line| line.starts_with(&start) && line.contains('–'));
        assert_eq!(rows.count(), count, "{row}\n{text}");
    }
}
