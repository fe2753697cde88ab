//! Faults of the proxy.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tollgate_testkit::proxy::{Direction, Fault, Proxy};
use tollgate_testkit::server::{Flavor, Server, Value};
use tollgate_testkit::wait::{MAX_WAIT, eventually};

/// Long enough for a reply that is not dropped.
const SILENCE: Duration = Duration::from_millis(200);

const LOADING: &[u8] = b"-LOADING not yet\r\n";

fn redis() -> (Server, Proxy) {
    let server = Server::start(Flavor::Redis);
    let proxy = Proxy::start(server.port());
    (server, proxy)
}

fn loading() -> Value {
    Value::Error("LOADING not yet".to_owned())
}

#[test]
fn forwards_everything_without_a_fault() {
    let (server, proxy) = redis();
    let mut raw = proxy.raw();
    let big = "x".repeat(3 << 20);
    assert_eq!(raw.call(&["SET", "big", &big]).text(), "OK");
    assert_eq!(raw.call(&["GET", "big"]).text(), big);
    for _ in 0..100 {
        raw.send(&["INCR", "n"]).expect("the connection is open");
    }
    let replies: Vec<i64> =
        (0..100).map(|_| raw.receive().expect("the connection is open").int()).collect();
    assert_eq!(replies, (1..=100).collect::<Vec<_>>());
    assert_eq!(proxy.url(), format!("redis://127.0.0.1:{}", proxy.port()));
    assert_eq!((proxy.connections(), proxy.cuts()), (1, 0));

    server.kill();
    assert!(raw.try_call(&["PING"]).is_err(), "the proxy closes when the server is killed");
    assert!(proxy.raw().try_call(&["PING"]).is_err(), "the server is down");
    server.restart();
    assert_eq!(proxy.raw().call(&["PING"]).text(), "PONG");
    assert_eq!(proxy.cuts(), 0);
}

/// Sends bytes through a proxy. Returns the bytes that arrive upstream, and how the connection ends.
fn send_through(
    proxy: &Proxy,
    upstream: &TcpListener,
    bytes: &[u8],
) -> (Vec<u8>, Option<ErrorKind>) {
    let mut client =
        TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).expect("the port is open");
    let (mut server, _) = upstream.accept().expect("the proxy connects");
    server.set_read_timeout(Some(MAX_WAIT)).expect("set the time-out");
    client.write_all(bytes).expect("the connection is open");
    let mut received = Vec::new();
    let ended = server.read_to_end(&mut received).err().map(|error| error.kind());
    (received, ended)
}

#[test]
fn requests_are_cut_at_the_exact_byte() {
    let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let proxy = Proxy::start(upstream.local_addr().expect("the port is open").port());
    let request = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
    for bytes in 1..request.len() {
        let count = bytes as u64;
        proxy.set(Fault::CutAfter { towards: Direction::Server, bytes: count..count + 1 });
        let (received, ended) = send_through(&proxy, &upstream, request);
        assert_eq!(received, request[..bytes]);
        assert_eq!(ended, Some(ErrorKind::ConnectionReset));
        assert_eq!(proxy.cuts(), count);
    }
}

#[test]
fn replies_are_cut_at_the_exact_byte() {
    let (server, proxy) = redis();
    let reply = b":1\r\n";
    for bytes in 0..reply.len() {
        let count = bytes as u64;
        proxy.set(Fault::CutAfter { towards: Direction::Client, bytes: count..count + 1 });
        let mut client =
            TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).expect("the port is open");
        client.set_read_timeout(Some(MAX_WAIT)).expect("set the time-out");
        client.write_all(format!("INCR {bytes}\r\n").as_bytes()).expect("the connection is open");
        let mut received = Vec::new();
        let error = client.read_to_end(&mut received).expect_err("the connection is cut");
        assert_eq!(
            (received.as_slice(), error.kind()),
            (&reply[..bytes], ErrorKind::ConnectionReset)
        );
        assert_eq!(server.raw().call(&["GET", &bytes.to_string()]).text(), "1");
    }
    assert_eq!(proxy.cuts(), 4);
}

#[test]
fn cut_position_depends_on_the_seed() {
    let (server, _) = redis();
    let lengths = |seed| {
        let proxy = Proxy::seeded(server.port(), seed);
        proxy.set(Fault::CutAfter { towards: Direction::Client, bytes: 10..1000 });
        let request = format!("ECHO {}\r\n", "x".repeat(2000));
        let length = |_| {
            let mut client =
                TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).expect("the port is open");
            client.write_all(request.as_bytes()).expect("the connection is open");
            let mut received = Vec::new();
            client.read_to_end(&mut received).expect_err("the connection is cut");
            received.len()
        };
        (0..8).map(length).collect::<Vec<_>>()
    };
    let first = lengths(1);
    assert!(first.iter().all(|length| (10..1000).contains(length)), "{first:?}");
    assert!(first.iter().any(|length| length != &first[0]), "{first:?}");
    assert_eq!(first, lengths(1));
    assert_ne!(first, lengths(2));
}

#[test]
fn cut_all_spares_later_connections() {
    let (_server, proxy) = redis();
    let mut clients = [proxy.raw(), proxy.raw(), proxy.raw()];
    clients.iter_mut().for_each(|client| assert_eq!(client.call(&["PING"]).text(), "PONG"));
    proxy.cut_all();
    clients.iter_mut().for_each(|client| assert!(client.try_call(&["PING"]).is_err()));
    assert_eq!(proxy.raw().call(&["PING"]).text(), "PONG");
    assert_eq!((proxy.connections(), proxy.cuts()), (4, 3));
}

#[test]
fn blackhole_drops_bytes_and_then_cuts_gaps() {
    let (server, proxy) = redis();
    let (mut loser, mut idle) = (proxy.raw().patient(SILENCE), proxy.raw());
    loser.call(&["PING"]);
    idle.call(&["PING"]);
    proxy.set(Fault::Blackhole);
    assert_eq!(
        loser.try_call(&["INCR", "n"]).expect_err("there is no reply").kind(),
        ErrorKind::WouldBlock
    );
    let mut new = proxy.raw().patient(SILENCE);
    assert_eq!(
        new.try_call(&["INCR", "n"]).expect_err("there is no reply").kind(),
        ErrorKind::WouldBlock
    );
    assert!(server.raw().call(&["GET", "n"]).is_nil());
    proxy.set(Fault::Pass);
    assert!(loser.try_call(&["PING"]).is_err() && new.try_call(&["PING"]).is_err());
    assert_eq!(idle.call(&["INCR", "n"]).int(), 1);
    assert_eq!((proxy.connections(), proxy.cuts()), (3, 2));
}

#[test]
fn cut_open_spares_later_connections() {
    let (_server, proxy) = redis();
    let mut old = proxy.raw();
    old.call(&["PING"]);
    proxy.set(Fault::CutOpen { towards: Direction::Client, bytes: 0..3 });
    let mut new = proxy.raw();
    assert_eq!(new.call(&["INCR", "n"]).int(), 1);
    assert!(old.try_call(&["INCR", "n"]).is_err());
    assert_eq!(new.call(&["INCR", "n"]).int(), 3, "the server executed the command that was cut");
    proxy.set(Fault::CutOpen { towards: Direction::Client, bytes: 0..3 });
    assert!(new.try_call(&["PING"]).is_err());
    assert_eq!(proxy.cuts(), 2);
}

#[test]
fn delay_applies_to_each_reply_separately() {
    let (server, proxy) = redis();
    let mut raw = proxy.raw();
    raw.call(&["PING"]);
    let delay = Duration::from_millis(300);
    proxy.set(Fault::Delay(delay));
    let began = Instant::now();
    raw.send(&["INCR", "n"]).expect("the connection is open");
    eventually("the request is not delayed", || !server.raw().call(&["GET", "n"]).is_nil());
    for _ in 0..9 {
        raw.send(&["INCR", "n"]).expect("the connection is open");
    }
    let replies: Vec<i64> =
        (0..10).map(|_| raw.receive().expect("the connection is open").int()).collect();
    assert_eq!(replies, (1..=10).collect::<Vec<_>>());
    assert!(began.elapsed() >= delay);

    // A delayed reply is sent when the delay is removed.
    proxy.set(Fault::Delay(MAX_WAIT * 10));
    raw.send(&["PING"]).expect("the connection is open");
    proxy.set(Fault::Pass);
    assert_eq!(raw.receive().expect("the connection is open").text(), "PONG");
}

#[test]
fn answer_replies_to_each_request() {
    let (server, proxy) = redis();
    let mut raw = proxy.raw();
    raw.call(&["PING"]);
    proxy.set(Fault::Answer(LOADING.to_vec()));
    for _ in 0..3 {
        raw.send(&["INCR", "n"]).expect("the connection is open");
    }
    raw.send_bytes(b"*2\r\n$4\r\nINCR\r\n$1").expect("the connection is open");
    (0..3).for_each(|_| assert_eq!(raw.receive().expect("the connection is open"), loading()));
    assert_eq!(proxy.raw().call(&["PING"]), loading());
    proxy.set(Fault::Pass);
    // The request that began under the fault gets its reply; the next one does not.
    raw.send_bytes(b"\r\nn\r\n").expect("the connection is open");
    raw.send(&["INCR", "n"]).expect("the connection is open");
    assert_eq!([raw.receive().ok(), raw.receive().ok()], [Some(loading()), Some(Value::Int(1))]);
    server.kill();
    proxy.set(Fault::Answer(LOADING.to_vec()));
    assert_eq!(proxy.raw().call(&["PING"]), loading(), "the proxy replies without a server");
    assert_eq!(proxy.answered(), 6);
}

#[test]
fn replies_keep_their_order() {
    let (server, proxy) = redis();
    let (mut raw, mut other) = (proxy.raw().patient(SILENCE), server.raw());
    raw.send(&["BLPOP", "list", "0"]).expect("the connection is open");
    let mut clients = || other.call(&["INFO", "clients"]).text().to_owned();
    eventually("the server has the request", || clients().contains("blocked_clients:1"));
    proxy.set(Fault::Answer(LOADING.to_vec()));
    raw.send(&["PING"]).expect("the connection is open");
    assert_eq!(
        raw.receive().expect_err("an earlier reply is pending").kind(),
        ErrorKind::WouldBlock
    );
    other.call(&["RPUSH", "list", "value"]);
    let mut raw = raw.patient(MAX_WAIT);
    assert_eq!(raw.receive().expect("the connection is open").array()[1].text(), "value");
    assert_eq!(raw.receive().expect("the connection is open"), loading());
}

#[test]
fn thousands_of_connections_are_cleaned_up() {
    let (server, proxy) = redis();
    let faults = [
        Fault::Pass,
        Fault::CutAfter { towards: Direction::Server, bytes: 0..30 },
        Fault::CutAfter { towards: Direction::Client, bytes: 0..6 },
        Fault::Answer(LOADING.to_vec()),
    ];
    for round in 0..3000 {
        if round % 250 == 0 {
            proxy.set(faults[round / 250 % faults.len()].clone());
        }
        let _ = proxy.raw().try_call(&["PING"]);
    }
    assert_eq!(proxy.connections(), 3000);
    assert!(proxy.cuts() > 500, "{} cuts", proxy.cuts());
    let mut raw = server.raw();
    let clients = |list: &Value| list.text().lines().count();
    eventually("all clients are disconnected", || clients(&raw.call(&["CLIENT", "LIST"])) == 1);

    // Dropping the proxy closes connections, even if the server hangs and the client does not read.
    server.hang();
    let mut stuck =
        TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).expect("the port is open");
    stuck.set_write_timeout(Some(SILENCE)).expect("set the time-out");
    proxy.set(Fault::Pass);
    while stuck.write_all(&[b'x'; 1 << 16]).is_ok() {}
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        drop(proxy);
        done.send(())
    });
    is_done.recv_timeout(MAX_WAIT).expect("the proxy stops");
    assert!(fs::read_dir("/proc/self/task").expect("the process exists").count() < 100);
}
