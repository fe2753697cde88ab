//! Notifications to a service manager such as systemd, over its socket.

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

/// The socket of the service manager.
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
        // Fails the test if an expected message does not arrive.
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { socket, name, _scratch: scratch }
    }

    fn next(&self) -> String {
        self.try_next().expect("a message")
    }

    fn try_next(&self) -> Option<String> {
        let mut bytes = [0; 4096];
        match self.socket.recv(&mut bytes) {
            Ok(length) => Some(String::from_utf8(bytes[..length].to_vec()).unwrap()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the messages received so far.
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

/// A process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ready_is_sent_when_it_listens() {
    let (manager, scratch) = (Manager::new(), Scratch::new());
    let log = scratch.path().join("log");
    let mut command = tollgate(&SERVE);
    command.env("NOTIFY_SOCKET", &manager.name).stderr(Stdio::from(File::create(&log).unwrap()));
    let _running = Running(command.spawn().unwrap());
    assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
    let log = fs::read_to_string(log).unwrap();
    let address = log.lines().find_map(|line| line.strip_prefix("listening on http://"));
    let address = address.unwrap_or_else(|| panic!("ready but not listening: {log}"));
    TcpStream::connect(address).expect("the server accepts connections");
}

#[test]
fn failed_start_sends_nothing() {
    let manager = Manager::new();
    let taken = Service::start(&[]);
    let mut command = tollgate(&["serve", "--http", &taken.address().to_string()]);
    let ended = command.env("NOTIFY_SOCKET", &manager.name).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(manager.rest(), [] as [&str; 0]);
}

#[test]
fn stopping_is_sent_when_the_drain_begins() {
    for drain in ["0", "1500"] {
        let manager = Manager::new();
        let mut service = manager.start(&["--drain-ms", drain], &[]);
        assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
        service.signal("TERM");
        assert_eq!(manager.next(), "STOPPING=1\nSTATUS=draining", "drain {drain}");
        if drain != "0" {
            assert_eq!(service.check("k")["allowed"], true, "still serving while draining");
        }
        assert_eq!(service.wait().0.code(), Some(0));
        assert_eq!(manager.rest(), [] as [&str; 0], "STOPPING is sent once");
    }
}

#[test]
fn watchdog_messages_continue_until_exit() {
    let manager = Manager::new();
    let mut service = manager.start(&["--drain-ms", "1000"], &[("WATCHDOG_USEC", "200000")]);
    assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
    for _ in 0..3 {
        assert_eq!(manager.next(), "WATCHDOG=1");
    }
    service.signal("TERM");
    while manager.next() != "STOPPING=1\nSTATUS=draining" {}
    assert_eq!(manager.next(), "WATCHDOG=1", "also while draining");
    assert_eq!(service.wait().0.code(), Some(0));
}

#[test]
fn stopped_process_sends_no_watchdog_message() {
    let manager = Manager::new();
    let service = manager.start(&[], &[("WATCHDOG_USEC", "100000")]);
    while manager.next() != "WATCHDOG=1" {}
    service.signal("STOP");
    let state = || fs::read_to_string(format!("/proc/{}/stat", service.id())).unwrap();
    eventually("the process is stopped", || state().contains(") T "));
    manager.rest();
    manager.socket.set_nonblocking(false).unwrap();
    manager.socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert_eq!(manager.try_next(), None);
    service.signal("CONT");
    manager.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(manager.next(), "WATCHDOG=1");
}

#[test]
fn ignores_the_watchdog_of_another_process() {
    let manager = Manager::new();
    let environment = [("WATCHDOG_USEC", "1000"), ("WATCHDOG_PID", "1")];
    let service = manager.start(&[], &environment);
    assert_eq!(service.check("k")["allowed"], true);
    assert_eq!(service.stop().0.code(), Some(0));
    assert_eq!(manager.rest(), ["READY=1\nSTATUS=serving", "STOPPING=1\nSTATUS=draining"]);
}

#[test]
fn status_reports_a_lost_store() {
    let (manager, server) = (Manager::new(), Server::start(Flavor::Redis));
    let url = server.url();
    let args =
        [&["--redis", &url, "--probe-ms", "50", "--breaker-failures", "1"], &LONG_TIMEOUT[..]]
            .concat();
    let service = manager.start(&args, &[]);
    assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
    server.kill();
    eventually("degraded mode", || service.check("k")["degraded"] == true);
    assert_eq!(manager.next(), "STATUS=serving, degraded: store lost");
    server.restart();
    assert_eq!(manager.next(), "STATUS=serving");
}

#[test]
fn supports_abstract_socket_names() {
    let name = format!("tollgate-notify-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let manager = Manager::of(socket, format!("@{name}"), Scratch::new());
    let service = manager.start(&[], &[]);
    assert_eq!(manager.next(), "READY=1\nSTATUS=serving");
    assert!(!service.log().contains("WARN"), "{}", service.log());
}

#[test]
fn serves_without_a_service_manager() {
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
fn sighup_does_not_stop() {
    let manager = Manager::new();
    let service = manager.start(&[], &[]);
    signal(service.id(), "HUP");
    service.wait_for_log("SIGHUP");
    assert_eq!(service.stop().0.code(), Some(0));
    assert_eq!(manager.rest(), ["READY=1\nSTATUS=serving", "STOPPING=1\nSTATUS=draining"]);
}
