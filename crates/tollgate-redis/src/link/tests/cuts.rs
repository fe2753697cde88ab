//! Connections that are cut anywhere, beneath TLS and without.

use tollgate_testkit::proxy::{Direction, Fault, Proxy};

use super::send_all;
use crate::failure::Failure;
use crate::fixtures::{Over, Secured, patient};
use crate::link::Link;
use crate::resp::{Command, Reply};

const CUTS: u64 = 200;
const TOGETHER: u64 = 8;

/// Counts under a key that no other command has. Some are so large that no socket takes them at once.
fn count(number: u64) -> Command {
    let padding = if number.is_multiple_of(5) { 300_000 } else { 10 };
    let script = "return redis.call('INCR', KEYS[1])";
    Command::new("EVAL").arg(script).number(1).number(number).arg(vec![b'x'; padding])
}

/// Sends until the connection is cut. How many commands there were by then.
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

async fn assert_runs_nothing_twice(over: Over) {
    let secured = Secured::start();
    let (port, ca) = (secured.tls_port(), secured.ca());
    let (proxy, rest) = match over {
        Over::Tcp => (Proxy::seeded(secured.server.port(), 3), String::new()),
        Over::Tls => (Proxy::seeded(port, 3), format!("?ca={ca}")),
    };
    let scheme = if over == Over::Tls { "rediss" } else { "redis" };
    let url = format!("{scheme}://127.0.0.1:{}{rest}", proxy.port());
    let link = Link::new(url.parse::<crate::Address>().unwrap(), patient());
    let mut sent = 0;
    while proxy.cuts() < CUTS {
        proxy.set(Fault::Pass);
        // A cut that came after the last answer may only be noticed now.
        while link.open().await.is_err() {}
        sent = count_until_cut(&link, &proxy, sent).await;
    }
    let keys = secured.server.raw().call(&["DBSIZE"]);
    let sum = "local s = 0 for _, k in ipairs(redis.call('KEYS', '*')) do s = s + redis.call('GET', k) end return s";
    let runs = secured.server.raw().call(&["EVAL", sum, "0"]);
    assert_eq!(keys, runs, "something ran twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cut_over_tcp_runs_once_at_most() {
    assert_runs_nothing_twice(Over::Tcp).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cut_over_tls_runs_once_at_most() {
    assert_runs_nothing_twice(Over::Tls).await;
}
