//! What a service manager such as systemd is told, over a socket as it gives one.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, Stdio};
use std::time::Duration;

use tollgate_testkit::server::{Flavor, Server};

use crate::redis::LONG_TIMEOUT;
use crate::service::{Scratch, Service, eventually, signal, tollgate};

const SERVE: [&str; 3] = ["serve", "--http", "127.0.0.1:0"];

/// The manager's end.
struct Manager {
    socket: UnixDatagram,
    name: String,
    _scratch: Scratch,
}

impl Manager {
    fn new() -> Self {
        let scratch = Scratch::new();
        let path = scratch.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        Self::of(socket, path.to_str().unwrap().to_owned(), scratch)
    }

    fn of(socket: UnixDatagram, name: String, scratch: Scratch) -> Self {
        // For who is told nothing although something was owed.
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { socket, name, _scratch: scratch }
    }

    fn next(&self) -> String {
        self.try_next().expect("something was owed")
    }

    fn try_next(&self) -> Option<String> {
        let mut bytes = [0; 4096];
        match self.socket.recv(&mut bytes) {
            Ok(length) => Some(String::from_utf8(bytes[..length].to_vec()).unwrap()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// What has come already. Of one that has ended: all that ever will.
    fn rest(&self) -> Vec<String> {
        self.socket.set_nonblocking(true).unwrap();
        std::iter::from_fn(|| self.try_next()).collect()
    }

    fn start(&self, args: &[&str], environment: &[(&str, &str)]) -> Service {
        let mut environment = environment.to_vec();
        environment.push(("NOTIFY_SOCKET", &self.name));
        Service::start_with(args, &environment)
    }
}

/// Ended when a test is done with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn it_is_ready_when_it_listens_and_not_before() {
    let (manager, scratch) = (Manager::new(), Scratch::new());
    let log = scratch.path().join("log");
    let mut command = tollgate(&SERVE);
    command.env("NOTIFY_SOCKET", &manager.name).stderr(Stdio::from(File::create(&log).unwrap()));
    let _running = Running(command.spawn().unwrap());
    assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
    let told = fs::read_to_string(log).unwrap();
    let address = told.lines().find_map(|line| line.strip_prefix("listening on http://"));
    let address = address.unwrap_or_else(|| panic!("ready, and it does not listen: {told}"));
    TcpStream::connect(address).expect("whoever waited for it gets in");
}

#[test]
fn one_that_does_not_start_is_never_ready() {
    let manager = Manager::new();
    let taken = Service::start(&[]);
    let mut command = tollgate(&["serve", "--http", &taken.address().to_string()]);
    let ended = command.env("NOTIFY_SOCKET", &manager.name).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(manager.rest(), [] as [&str; 0]);
}

#[test]
fn the_end_is_told_when_it_begins() {
    for drain in ["0", "1500"] {
        let manager = Manager::new();
        let mut service = manager.start(&["--drain-ms", drain], &[]);
        assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
        service.signal("TERM");
        assert_eq!(manager.next(), "STOPPING=1\nSTATUS=draining", "drain {drain}");
        if drain != "0" {
            assert_eq!(service.check("k")["allowed"], true, "told before it is through");
        }
        assert_eq!(service.wait().0.code(), Some(0));
        assert_eq!(manager.rest(), [] as [&str; 0], "it is told once");
    }
}

#[test]
fn a_watchdog_hears_of_it_until_the_end() {
    let manager = Manager::new();
    let mut service = manager.start(&["--drain-ms", "1000"], &[("WATCHDOG_USEC", "200000")]);
    assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
    for _ in 0..3 {
        assert_eq!(manager.next(), "WATCHDOG=1");
    }
    service.signal("TERM");
    while manager.next() != "STOPPING=1\nSTATUS=draining" {}
    assert_eq!(manager.next(), "WATCHDOG=1", "draining is no silence");
    assert_eq!(service.wait().0.code(), Some(0));
}

#[test]
fn a_process_that_hangs_says_nothing_and_one_that_goes_on_does() {
    let manager = Manager::new();
    let service = manager.start(&[], &[("WATCHDOG_USEC", "100000")]);
    while manager.next() != "WATCHDOG=1" {}
    service.signal("STOP");
    let state = || fs::read_to_string(format!("/proc/{}/stat", service.id())).unwrap();
    eventually("it is stopped", || state().contains(") T "));
    manager.rest();
    manager.socket.set_nonblocking(false).unwrap();
    manager.socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert_eq!(manager.try_next(), None);
    service.signal("CONT");
    manager.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(manager.next(), "WATCHDOG=1");
}

#[test]
fn the_watchdog_of_another_process_is_none_of_ours() {
    let manager = Manager::new();
    let environment = [("WATCHDOG_USEC", "1000"), ("WATCHDOG_PID", "1")];
    let service = manager.start(&[], &environment);
    assert_eq!(service.check("k")["allowed"], true);
    assert_eq!(service.stop().0.code(), Some(0));
    assert_eq!(manager.rest(), ["READY=1\nSTATUS=serving", "STOPPING=1\nSTATUS=draining"]);
}

#[test]
fn a_lost_store_is_its_status() {
    let (manager, server) = (Manager::new(), Server::start(Flavor::Redis));
    let url = server.url();
    let args =
        [&["--redis", &url, "--probe-ms", "50", "--breaker-failures", "1"], &LONG_TIMEOUT[..]]
            .concat();
    let service = manager.start(&args, &[]);
    assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
    server.kill();
    eventually("it decides alone", || service.check("k")["degraded"] == true);
    assert_eq!(manager.next(), "STATUS=serving, degraded: store unavailable");
    server.restart();
    assert_eq!(manager.next(), "STATUS=serving");
}

#[test]
fn an_abstract_name_is_a_name_too() {
    let name = format!("tollgate-notify-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let manager = Manager::of(socket, format!("@{name}"), Scratch::new());
    let service = manager.start(&[], &[]);
    assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
    assert!(!service.log().contains("WARN"), "{}", service.log());
}

#[test]
fn where_nobody_listens_it_serves_all_the_same() {
    let quiet = Service::start_with(&[], &[("WATCHDOG_USEC", "1000")]);
    assert_eq!(quiet.check("k")["allowed"], true);
    let (status, log) = quiet.stop();
    assert!(status.success() && !log.contains("WARN") && !log.contains("NOTIFY"), "{log}");
    for nowhere in ["/nowhere/notify", "not-a-path", "vsock:2:1234"] {
        let service = Service::start_with(&[], &[("NOTIFY_SOCKET", nowhere)]);
        assert_eq!(service.check("k")["allowed"], true);
        let (status, log) = service.stop();
        assert!(status.success() && log.contains("WARN"), "{nowhere}: {log}");
    }
}

#[test]
fn a_hangup_is_not_the_end() {
    let manager = Manager::new();
    let service = manager.start(&[], &[]);
    signal(service.id(), "HUP");
    service.wait_for_log("SIGHUP");
    assert_eq!(service.stop().0.code(), Some(0));
    assert_eq!(manager.rest(), ["READY=1\nSTATUS=serving", "STOPPING=1\nSTATUS=draining"]);
}
