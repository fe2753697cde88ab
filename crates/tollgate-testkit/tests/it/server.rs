//! Servers: start, faults and cleanup.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tollgate_testkit::server::{Flavor, Raw, Server, Value};
use tollgate_testkit::wait::eventually;

/// Long enough for the reply of an idle server on a busy machine.
const REPLY_TIMEOUT: Duration = Duration::from_millis(200);

#[test]
fn starts_each_flavor() {
    for (flavor, field) in
        [(Flavor::Redis, "redis_version:7"), (Flavor::Valkey, "valkey_version:9.1")]
    {
        let server = Server::start(flavor);
        let mut raw = server.raw();
        assert_eq!(raw.call(&["PING"]), Value::Simple("PONG".to_owned()));
        assert!(raw.call(&["INFO", "server"]).text().contains(field), "{flavor}");
        let id = raw.call(&["INFO", "server"]).text().to_owned();
        assert!(id.contains(&format!("process_id:{}\r\n", server.pid())), "{flavor}");
        assert_eq!(server.flavor(), flavor);
    }
}

#[test]
fn settings_reach_the_server() {
    for flavor in Flavor::ALL {
        let server = Server::builder(flavor).arg("--requirepass").arg("secret").start();
        let mut raw = server.raw();
        assert!(raw.call(&["GET", "key"]).error().starts_with("NOAUTH"), "{flavor}");
        assert_eq!(raw.call(&["AUTH", "secret"]).text(), "OK");
        assert!(raw.call(&["GET", "key"]).is_nil());
        let at = format!("redis://:secret@127.0.0.1:{}/3", server.port());
        assert_eq!(server.url_with(":secret@", 3), at);
    }
}

#[test]
#[should_panic(expected = "no-such-setting")]
fn failed_start_panics_with_the_log() {
    Server::builder(Flavor::Redis).arg("--no-such-setting").arg("1").start();
}

#[test]
fn reads_every_kind_of_reply() {
    let server = Server::start(Flavor::Redis);
    let mut raw = server.raw();
    assert_eq!(raw.call(&["SET", "n", "41"]).text(), "OK");
    assert_eq!(raw.call(&["INCR", "n"]).int(), 42);
    assert_eq!(raw.call(&[b"SET".as_slice(), b"b", &[0, 255, 13, 10]]).text(), "OK");
    assert_eq!(raw.call(&["GET", "b"]).bytes(), [0, 255, 13, 10]);
    assert_eq!(raw.call(&["GET", "n"]).text(), "42");
    assert!(raw.call(&["GET", "none"]).is_nil());
    assert!(raw.call(&["INCR", "b"]).error().starts_with("ERR"));
    let nested = raw.call(&["EVAL", "return {1, {'two', false}, {}}", "0"]);
    let two = Value::Array(vec![Value::Bulk(b"two".to_vec()), Value::Nil]);
    assert_eq!(nested.array(), [Value::Int(1), two, Value::Array(Vec::new())]);
    assert!(raw.call(&["HELLO", "3"]).array().contains(&Value::Bulk(b"proto".to_vec())));
    assert!(raw.call(&["GET", "none"]).is_nil());
}

#[test]
fn hangs_and_resumes() {
    for flavor in Flavor::ALL {
        let server = Server::start(flavor);
        let mut open = server.raw().patient(REPLY_TIMEOUT);
        server.hang();
        assert!(open.try_call(&["INCR", "n"]).is_err(), "{flavor} replies while it hangs");
        let mut new = server.raw().patient(REPLY_TIMEOUT);
        assert!(new.try_call(&["INCR", "n"]).is_err(), "{flavor} replies while it hangs");
        server.resume();
        let mut raw = server.raw();
        eventually("both requests are executed", || {
            raw.call(&["GET", "n"]) == Value::Bulk(b"2".to_vec())
        });
    }
}

#[test]
fn listens_on_a_unix_socket() {
    for flavor in Flavor::ALL {
        let server = Server::builder(flavor).unix().start();
        let ping = || {
            let mut stream = UnixStream::connect(server.unix_path()).expect("the socket is open");
            stream.write_all(b"PING\r\n").expect("the server reads");
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).expect("the server replies");
            line
        };
        assert_eq!(ping(), "+PONG\r\n", "{flavor}");
        server.restart();
        assert_eq!(ping(), "+PONG\r\n", "{flavor}");
        assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    }
}

#[test]
fn restarts_empty_on_the_same_port() {
    for flavor in Flavor::ALL {
        let server = Server::start(flavor);
        let (port, id) = (server.port(), server.pid());
        let mut raw = server.raw();
        raw.call(&["SET", "key", "1"]);
        server.kill();
        assert!(raw.try_call(&["PING"]).is_err(), "{flavor} replies after the kill");
        assert!(Raw::try_connect(port).is_err(), "{flavor} listens after the kill");
        server.restart();
        assert_eq!((server.port(), server.raw().call(&["GET", "key"])), (port, Value::Nil));
        server.restart();
        assert_ne!(server.pid(), id);
        assert_eq!(server.raw().call(&["DBSIZE"]).int(), 0);
    }
}

#[test]
fn drop_removes_process_and_directory() {
    for hang in [false, true] {
        let server = Server::start(Flavor::Redis);
        let (port, process) = (server.port(), format!("/proc/{}", server.pid()));
        let dir = server.raw().call(&["CONFIG", "GET", "dir"]).array()[1].text().to_owned();
        assert!(Path::new(&dir).is_dir() && Path::new(&process).is_dir());
        if hang {
            server.hang();
        }
        drop(server);
        assert!(!Path::new(&dir).exists() && !Path::new(&process).exists());
        assert!(Raw::try_connect(port).is_err());
    }
}

#[test]
fn server_stops_when_the_test_is_killed() {
    const ROLE: &str = "TESTKIT_ROLE";
    if let Ok(role) = std::env::var(ROLE) {
        let server = Server::start(Flavor::Valkey);
        match role.as_str() {
            "hang" => server.hang(),
            "restart" => server.restart(),
            _ => {}
        }
        println!("\nprocess {}", server.pid());
        loop {
            thread::park();
        }
    }
    for role in ["serve", "hang", "restart"] {
        // Runs this test again in a process that is killed.
        let mut killed = Command::new(std::env::current_exe().expect("the test has a path"))
            .args(["--exact", "server::server_stops_when_the_test_is_killed", "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .spawn()
            .expect("run the test again");
        let lines = BufReader::new(killed.stdout.take().expect("stdout is piped")).lines();
        let mut ids = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("process ")?.parse().ok());
        let id: u32 = ids.next().expect("the test prints the id of its server");
        killed.kill().and_then(|()| killed.wait()).expect("kill the test");
        eventually("the server has stopped", || !Path::new(&format!("/proc/{id}")).exists());
    }
}

#[test]
fn reports_cpu_and_memory() {
    let server = Server::start(Flavor::Valkey);
    let (cpu, rss) = (server.cpu(), server.rss());
    assert!(rss > 1 << 20, "{rss} bytes");
    let mut raw = server.raw();
    raw.call(&["SET", "big", &"x".repeat(16 << 20)]);
    assert!(server.rss() > rss + (8 << 20), "{} bytes after {rss}", server.rss());
    let began = Instant::now();
    raw.call(&["EVAL", "local n = 0 for i = 1, 2e7 do n = n + i end return n", "0"]);
    let used = server.cpu() - cpu;
    assert!(used > Duration::from_millis(10), "{used:?} of {:?}", began.elapsed());
}
