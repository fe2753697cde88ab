//! Connections that are cut at any byte, with and without TLS.

use tollgate_testkit::proxy::{Direction, Fault, Proxy};

use super::send_all;
use crate::failure::Failure;
use crate::fixtures::{Protocol, TlsServer, long_timeouts};
use crate::link::Link;
use crate::resp::{Command, Reply};

const CUTS: u64 = 200;
const TOGETHER: u64 = 8;

/// Increments a key of its own. Some commands are larger than a socket buffer.
fn count(number: u64) -> Command {
    let padding = if number.is_multiple_of(5) { 300_000 } else { 10 };
    let script = "return redis.call('INCR', KEYS[1])";
    Command::new("EVAL").arg(script).number(1).number(number).arg(vec![b'x'; padding])
}

/// Sends until the connection is cut. Returns the number of commands so far.
async fn count_until_cut(link: &Link, proxy: &Proxy, mut sent: u64) -> u64 {
    let before = proxy.cuts();
    let towards = if before.is_multiple_of(2) { Direction::Client } else { Direction::Server };
    let most = if towards == Direction::Client { 700 } else { 1_500_000 };
    proxy.set(Fault::CutAfter { towards, bytes: 0..most });
    while proxy.cuts() == before {
        for outcome in send_all(link, (sent..sent + TOGETHER).map(count)).await {
            let is_right = matches!(
                outcome,
                Ok(Reply::Integer(1)) | Err(Failure::Lost(_) | Failure::Unreachable(_))
            );
            assert!(is_right, "{outcome:?}");
        }
        sent += TOGETHER;
    }
    sent
}

async fn assert_runs_nothing_twice(protocol: Protocol) {
    let tls_server = TlsServer::start();
    let (port, ca) = (tls_server.tls_port(), tls_server.ca());
    let (proxy, rest) = match protocol {
        Protocol::Tcp => (Proxy::seeded(tls_server.server.port(), 3), String::new()),
        Protocol::Tls => (Proxy::seeded(port, 3), format!("?ca={ca}")),
    };
    let scheme = if protocol == Protocol::Tls { "rediss" } else { "redis" };
    let url = format!("{scheme}://127.0.0.1:{}{rest}", proxy.port());
    let link = Link::new(url.parse::<crate::Address>().unwrap(), long_timeouts());
    let mut sent = 0;
    while proxy.cuts() < CUTS {
        proxy.set(Fault::Pass);
        // A cut after the last reply may only be detected now.
        while link.open().await.is_err() {}
        sent = count_until_cut(&link, &proxy, sent).await;
    }
    let keys = tls_server.server.raw().call(&["DBSIZE"]);
    let sum = "local s = 0 for _, k in ipairs(redis.call('KEYS', '*')) do s = s + redis.call('GET', k) end return s";
    let runs = tls_server.server.raw().call(&["EVAL", sum, "0"]);
    assert_eq!(keys, runs, "something ran twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_cut_over_tcp_run_at_most_once() {
    assert_runs_nothing_twice(Protocol::Tcp).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_cut_over_tls_run_at_most_once() {
    assert_runs_nothing_twice(Protocol::Tls).await;
}
