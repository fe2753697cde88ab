//! A front end of another protocol, `examples/line_protocol.rs`, has TLS, tokens, drain and metrics from the listener and the
//! service.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use tokio_rustls::rustls::ALL_VERSIONS;
use tollgate_testkit::server::{Certificates, Identity};
use tollgate_testkit::wait::pause;

use crate::client::Client;
use crate::service::{Service, eventually};
use crate::tls_client::TlsClient;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const SOURCE: &str = include_str!("../../examples/line_protocol.rs");

fn example() -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/line_protocol");
    assert!(path.exists(), "line_protocol is not built: cargo build -p tollgate-server --examples");
    let mut command = Command::new(path);
    command.env("LINE_ADDRESS", "127.0.0.1:0").args(["serve", "--http", "127.0.0.1:0"]);
    command
}

fn tls<'c>(command: &'c mut Command, certificates: &Certificates) -> &'c mut Command {
    let Identity { certificate, key, .. } = &certificates.server;
    command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key)
}

/// Returns the address of the line protocol from the log.
fn line_address(service: &Service, scheme: &str) -> SocketAddr {
    let start = format!("listening on {scheme}://");
    service.wait_for_log(&start);
    let find = || {
        let log = service.log();
        let lines = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines.filter_map(|line| line.strip_prefix(&start)?.parse().ok()).next()
    };
    eventually("the whole line", || find().is_some());
    find().expect("just seen")
}

#[test]
fn has_at_most_120_lines() {
    assert!(SOURCE.lines().count() <= 120, "{}", SOURCE.lines().count());
}

#[test]
fn decides_as_http_does() {
    let service = Service::start_as(&mut example());
    let mut client = Client::connect(line_address(&service, "line"));
    assert_eq!(client.exchange("CHECK k"), "OK 99");
    assert_eq!(service.check("k")["remaining"], 98, "both front ends use one service");
    for remaining in (0..98).rev() {
        assert_eq!(client.exchange("CHECK k"), format!("OK {remaining}"));
    }
    let refused = client.exchange("CHECK k");
    let wait: u64 = refused.strip_prefix("NO ").expect("refused").parse().expect("milliseconds");
    assert!((1..=60_000).contains(&wait), "{refused}");
    assert_eq!(client.exchange("TAKE k"), "ERR use AUTH or CHECK");
    let empty = client.exchange("CHECK ");
    assert!(empty.starts_with("ERR "), "{empty}");
    client.send(&[b'a'; 4096]).expect("sent");
    assert!(client.line().is_err(), "a line without end is not kept");
}

/// Sends lines in batches and reads no answer, until the server stops deciding because it cannot write, or `max` lines are
/// decided. Returns the number of lines decided.
fn send_without_reading(client: &mut Client, decided: impl Fn() -> usize, max: usize) -> usize {
    const BATCH: usize = 500;
    let (start, mut sent) = (decided(), 0);
    while sent < max {
        let lines = BATCH.min(max - sent);
        client.send("CHECK k\n".repeat(lines).as_bytes()).expect("sent");
        sent += lines;
        let mut unchanged = 0;
        while decided() - start < sent && unchanged < 20 {
            let before = decided();
            pause();
            unchanged = if decided() == before { unchanged + 1 } else { 0 };
        }
        if decided() - start < sent {
            break;
        }
    }
    decided() - start
}

#[test]
fn answers_every_line_of_a_client_that_reads_late_over_tls() {
    let certificates = Certificates::new();
    let service = Service::start_as(tls(&mut example(), &certificates));
    let address = line_address(&service, "lines");
    let tls = TlsClient::trusting(&certificates.ca, ALL_VERSIONS);
    let connect = |address| tls.connect(address).expect("a trusted certificate").0;
    let decided = || {
        let metrics = connect(service.address()).get("/metrics").body;
        let checks = metrics.lines().filter_map(|line| {
            line.strip_prefix("ratelimiter_requests_checked_total{")?
                .split_once(' ')?
                .1
                .parse::<usize>()
                .ok()
        });
        checks.sum::<usize>()
    };
    let blocked_at = send_without_reading(&mut connect(address), decided, 1_000_000);
    // Slightly fewer: the socket is full, and TLS buffers the last answers.
    let mut client = connect(address);
    let lines = send_without_reading(&mut client, decided, blocked_at.saturating_sub(1000));
    for number in 0..lines {
        let line = client.line().unwrap_or_else(|error| panic!("{number} of {lines}: {error}"));
        assert!(line.starts_with("OK ") || line.starts_with("NO "), "{line}");
    }
}

#[test]
fn public_address_needs_a_token() {
    let refused = example().env("LINE_ADDRESS", "0.0.0.0:0").output().expect("the example runs");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("LINE_ADDRESS") && error.contains("TOLLGATE_CHECK_TOKEN"), "{error}");
}

#[test]
fn has_tls_tokens_metrics_and_drain() {
    let certificates = Certificates::new();
    let mut command = example();
    tls(&mut command, &certificates).args(["--drain-ms", "0"]).env("TOLLGATE_CHECK_TOKEN", TOKEN);
    let mut service = Service::start_as(&mut command);
    let address = line_address(&service, "lines");
    let tls = TlsClient::trusting(&certificates.ca, ALL_VERSIONS);
    let connect = |address| tls.connect(address).expect("a trusted certificate").0;

    let mut client = connect(address);
    assert_eq!(client.exchange("CHECK k"), "ERR send AUTH token first");
    let wrong = client.exchange("AUTH 00000000000000000000000000000000");
    assert_eq!(wrong, "ERR invalid token; send the check token");
    assert_eq!(client.exchange("CHECK k"), "ERR send AUTH token first");
    assert_eq!(client.exchange(&format!("AUTH {TOKEN}")), "OK");
    assert_eq!(client.exchange("CHECK k"), "OK 99");

    let metrics = connect(service.address()).get("/metrics").body;
    for series in [
        "ratelimiter_requests_checked_total{result=\"allowed\"} 1",
        "tollgate_auth_failures_total{token=\"check\"} 1",
        "tollgate_requests_total{frontend=\"line\"} 1",
        "tollgate_connections{frontend=\"line\"} 1",
        "tollgate_connections{frontend=\"http\"} 1",
    ] {
        assert!(metrics.lines().any(|line| line == series), "{series} is not in {metrics}");
    }

    let mut idle = connect(address);
    assert_eq!(idle.exchange(&format!("AUTH {TOKEN}")), "OK");
    client.send(b"CHECK ").expect("sent");
    service.signal("TERM");
    eventually("no new connections", || TcpStream::connect(address).is_err());
    idle.expect_end();
    client.send(b"k\n").expect("the request in progress may continue");
    assert_eq!(client.line().expect("an answer"), "OK 98");
    client.expect_end();
    let (status, log) = service.wait();
    assert!(status.success(), "{log}");
}
