//! Tests of the RESP benchmarks with real processes. No test depends on speed.

use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tollgate_bench::load::candidate::Candidate;
use tollgate_bench::load::runner::Runner;
use tollgate_bench::load::scale::Scale;
use tollgate_bench::load::task::RequestSpec;
use tollgate_bench::resp::candidate::Programs;
use tollgate_bench::resp::report::Report;
use tollgate_bench::server::{Address, Cores, Server};

use crate::fake_program::{fake_program, run_info};

const CONSTANT: &str = env!("CARGO_BIN_EXE_resp_constant");
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

/// Starts the baseline server for `INCR` with 100 keys.
fn constant(reply: &str) -> Candidate {
    let mut command = Command::new(CONSTANT);
    command.args(["127.0.0.1:0", reply]);
    let protocol = ["resp", "INCR"].map(str::to_owned).to_vec();
    let requests = RequestSpec { protocol, keys: 100, rules: 1 };
    Candidate {
        server: Server::start(command, Address::Logged("resp")).unwrap(),
        requests,
        config: None,
    }
}

#[test]
fn pipelines_get_one_reply_per_command() {
    let candidate = constant(":12345\r\n");
    for pipeline in [1, 16, 64] {
        let filled = runner().fill(&candidate, pipeline).unwrap();
        assert_eq!([filled.answered, filled.payload_bytes], [100.0, 8.0], "P={pipeline}");
        let [figures] = runner().rounds([&candidate], pipeline).unwrap();
        assert!(figures.per_second.min() > 0.0 && figures.p50.max() <= figures.p999.max());
    }
}

#[test]
fn unexpected_reply_aborts_the_run() {
    let error = runner().fill(&constant("-ERR busy\r\n"), 16).unwrap_err().to_string();
    assert_eq!(error, "resp INCR: load: unexpected reply: -ERR busy");
}

/// Replaces tollgate and throttlecrab-server with the baseline server, after a check of their arguments. The first
/// tollgate replies to `CL.THROTTLE`, the second to `THROTTLE`.
fn programs(directory: &TempDir) -> Programs {
    let reply = |first: u32| format!(r"$(printf '*5\r\n:{first}\r\n:9\r\n:9\r\n:0\r\n:0\r\n.')");
    let tollgate = format!(
        r#"[ "$1 $2 $3 $4 $5" = "serve --http 127.0.0.1:0 --resp 127.0.0.1:0" ] || exit 2
           if mkdir "$0.started" 2>/dev/null; then reply="{}"; else reply="{}"; fi
           exec {CONSTANT} 127.0.0.1:0 "${{reply%.}}""#,
        reply(0),
        reply(1),
    );
    let throttlecrab = format!(
        r#"[ "$1" = --version ] && echo throttlecrab-server 0.4.99 && exit
           [ "$1 $2 $3 $4" = "--redis --redis-host 127.0.0.1 --redis-port" ] || exit 2
           reply="{}"
           exec {CONSTANT} "127.0.0.1:$5" "${{reply%.}}""#,
        reply(1),
    );
    let redis = std::env::var_os("TOLLGATE_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
    Programs {
        tollgate: fake_program(directory.path(), "tollgate", &tollgate),
        throttlecrab: fake_program(directory.path(), "throttlecrab-server", &throttlecrab),
        redis: redis.into(),
        constant: CONSTANT.into(),
        load: LOAD.into(),
        cores: Cores::Any,
    }
}

#[test]
fn report_is_complete_with_valid_figures() {
    let directory = TempDir::new().unwrap();
    let report = Report::measure(SHORT_SCALE, &programs(&directory), run_info("resp")).unwrap();
    for figure in report.figures() {
        // CPU time may be 0: a short window can be less than one clock tick.
        assert!(figure.is_finite() && figure >= 0.0, "{figure} in\n{report}");
    }
    let text = report.to_string();
    assert!(text.contains("\n- Peers: throttlecrab-server 0.4.99, redis-server "), "{text}");
    for (row, count) in [
        ("tollgate, `CL.THROTTLE`", 3),
        ("tollgate, `THROTTLE`", 3),
        ("throttlecrab-server, `THROTTLE`", 3),
        ("Redis, `INCR`", 3),
        ("tokio, constant reply", 3),
        ("× tokio constant, P=1", 1),
        ("× throttlecrab-server, P=1", 1),
        ("× Redis `INCR`, P=16", 1),
        ("× throttlecrab-server, P=16", 1),
        ("× Redis `INCR`, P=64", 1),
        ("× throttlecrab-server, P=64", 1),
    ] {
        let start = format!("| {row} | ");
        let rows = text.lines().filter(|line| line.starts_with(&start) && line.contains('–'));
        assert_eq!(rows.count(), count, "{row}\n{text}");
    }
}
