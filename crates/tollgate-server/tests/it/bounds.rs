//! Limits on size, time, connections and memory of requests.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tollgate_testkit::wait::pause;

use crate::client::{Client, Reply};
use crate::service::{Service, eventually};

/// Returns the resident memory of the process in KiB.
fn resident_kib(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id()));
    let status = status.expect("the process runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a VmRSS line");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("a number")
}

#[test]
fn long_body_is_413_and_uses_no_memory() {
    let service = Service::start(&[]);
    service.check("warm");
    let before = resident_kib(&service);
    for path in ["/check", "/check/batch"] {
        let mut client = service.client();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
             content-length: 1073741824\r\n\r\n"
        );
        client.send(head.as_bytes()).unwrap();
        let chunk = vec![b' '; 1 << 20];
        // The server may close the connection before all is sent.
        for _ in 0..64 {
            if client.send(&chunk).is_err() {
                break;
            }
        }
        if let Ok(reply) = client.reply() {
            assert_eq!(reply.status, 413, "{path}");
        }
    }
    let body = format!(r#"{{"key":"{}"}}"#, "x".repeat(65_536));
    assert_eq!(service.post("/check", body).status, 413);
    let grown = resident_kib(&service).saturating_sub(before);
    assert!(grown < 8 * 1024, "{grown} KiB more");
    assert_eq!(service.check("after")["remaining"], 99);
}

#[test]
fn items_of_a_batch_that_is_too_long_are_not_parsed() {
    let service = Service::start(&[]);
    service.check("warm");
    let before = resident_kib(&service);
    // Half a million items in the maximum size of a body.
    let body = format!(r#"{{"requests":[1{}]}}"#, ",1".repeat((1024 * 1024 - 16) / 2));
    for _ in 0..3 {
        let reply = service.post("/check/batch", body.clone());
        assert_eq!((reply.status, &reply.json()["field"]), (400, &"requests".into()));
    }
    let grown = resident_kib(&service).saturating_sub(before);
    // Buffers of the bodies, on each thread. The results of all items would take 264 MiB.
    assert!(grown < 32 * 1024, "{grown} KiB more");
}

#[test]
fn accepts_body_of_maximum_size() {
    let service = Service::start(&[]);
    let body = |length: usize| {
        let mut body = br#"{"key":"k"}"#.to_vec();
        body.resize(length, b' ');
        body
    };
    assert_eq!(service.post("/check", body(64 * 1024)).status, 200);
    assert_eq!(service.post("/check", body(64 * 1024 + 1)).status, 413);
}

#[test]
fn rejects_long_heads() {
    let service = Service::start(&[]);
    for head in [
        format!("GET /healthz HTTP/1.1\r\nhost: t\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)),
        format!("GET /healthz HTTP/1.1\r\nhost: t\r\n{}\r\n", "x: y\r\n".repeat(10_000)),
        format!("GET /{} HTTP/1.1\r\nhost: t\r\n\r\n", "y".repeat(1 << 20)),
    ] {
        let mut client = service.client();
        let _ = client.send(head.as_bytes());
        if let Ok(reply) = client.reply() {
            assert!([400, 414, 431].contains(&reply.status), "{}", reply.status);
        }
    }
    assert_eq!(service.get("/healthz").status, 200);
}

#[test]
fn reads_bodies_sent_in_pieces() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let body = br#"{"key":"pieces"}"#;
    let head = "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n";
    client.send(format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes()).unwrap();
    for byte in body {
        client.send(&[*byte]).unwrap();
    }
    assert_eq!(client.reply().unwrap().json()["remaining"], 99);
    client.send(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes()).unwrap();
    for byte in body {
        client.send(format!("1\r\n{}\r\n", char::from(*byte)).as_bytes()).unwrap();
    }
    client.send(b"0\r\n\r\n").unwrap();
    assert_eq!(client.reply().unwrap().json()["remaining"], 98);
}

#[test]
fn responds_to_pipelined_requests_in_order() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let body = r#"{"key":"p"}"#;
    let request = format!(
        "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.send(request.repeat(50).as_bytes()).unwrap();
    for remaining in (50..100).rev() {
        assert_eq!(client.reply().unwrap().json()["remaining"], remaining);
    }
}

#[test]
fn closes_connections_with_an_incomplete_head() {
    let service = Service::start(&[]);
    let mut slow = TcpStream::connect(service.address()).unwrap();
    slow.write_all(b"POST /check HTTP/1.1\r\nhost: t\r\n").unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(50))).unwrap();
    let start = Instant::now();
    let mut response = Vec::new();
    let _ = slow.read_to_end(&mut response);
    let took = start.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(40)).contains(&took), "{took:?}");
}

#[test]
fn serves_at_most_max_connections() {
    let service = Service::start(&["--max-connections", "2"]);
    let mut held: Vec<Client> = (0..2).map(|_| service.client()).collect();
    for client in &mut held {
        assert_eq!(client.get("/healthz").status, 200);
    }
    let mut waiting = service.client();
    waiting.send(b"GET /healthz HTTP/1.1\r\nhost: t\r\n\r\n").unwrap();
    held.pop();
    assert_eq!(waiting.reply().unwrap().status, 200, "a connection was closed");
}

#[test]
fn accept_queue_holds_many_connections() {
    let service = Service::start(&[]);
    service.signal("STOP");
    // A client that finds the queue full would retry after a second, and then with increasing delays.
    let timeout = Duration::from_secs(30);
    let queued: Vec<TcpStream> = (0..400)
        .map(|_| TcpStream::connect_timeout(&service.address(), timeout).expect("queue not full"))
        .collect();
    service.signal("CONT");
    for mut stream in queued {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
}

#[test]
fn recovers_from_file_descriptor_exhaustion() {
    let service = Service::start(&[]);
    let limited = std::process::Command::new("prlimit")
        .args([&format!("--pid={}", service.id()), "--nofile=24:24"])
        .status()
        .expect("prlimit is installed (Debian package util-linux)");
    assert!(limited.success());
    let mut held: Vec<Client> = Vec::new();
    for _ in 0..40 {
        held.push(service.client());
    }
    let before = cpu_ticks(&service);
    service.wait_for_log("cannot accept a connection; retrying");
    drop(held);
    eventually("served again", || {
        let client = Client::try_connect(service.address());
        client.is_ok_and(|mut client| client.get("/healthz").status == 200)
    });
    assert!(cpu_ticks(&service) - before < 100, "the accept loop must not spin");
}

fn cpu_ticks(service: &Service) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", service.id())).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn incomplete_body_is_408() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let head = "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n";
    client.send(format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).unwrap();
    assert_eq!(client.reply().unwrap().status, 408);
}

#[test]
fn closes_connections_that_do_not_read() {
    let service = Service::start(&[]);
    let mut stream = TcpStream::connect(service.address()).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: t\r\n\r\n".repeat(100);
    // Sends requests without reading until the server closes the connection.
    let start = Instant::now();
    while stream.write_all(&request).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(120), "the connection is still open");
    }
    assert_eq!(service.get("/healthz").status, 200);
}

#[test]
fn incomplete_bodies_share_a_memory_budget() {
    let service = Service::start(&[]);
    service.check("warm");
    let before = resident_kib(&service);
    let head = "POST /release HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
                content-length: 2000000\r\n\r\n";
    let held: Vec<TcpStream> = (0..150)
        .map(|_| {
            let mut slow = TcpStream::connect(service.address()).unwrap();
            // The server does not read bodies beyond the budget, so a blocking write would hang.
            slow.set_nonblocking(true).unwrap();
            let _ = slow.write_all(head.as_bytes());
            let _ = slow.write_all(&vec![b' '; 1_900_000]);
            slow
        })
        .collect();
    assert_eq!(service.check("k")["remaining"], 99, "a complete body needs no budget");
    let grown = resident_kib(&service).saturating_sub(before);
    assert!(grown < 128 * 1024, "{grown} KiB more for {} bodies", held.len());
}

/// Opens connections that announce the longest body of any path and stop after 10 KB.
fn open_stalled(service: &Service, count: usize) -> Vec<TcpStream> {
    let head = "POST /release HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
                content-length: 2000000\r\n\r\n";
    let open = |_| {
        let mut stalled = TcpStream::connect(service.address()).unwrap();
        stalled.write_all(head.as_bytes()).unwrap();
        stalled.set_nodelay(true).unwrap();
        stalled
    };
    let mut all: Vec<TcpStream> = (0..count).map(open).collect();
    for _ in 0..10 {
        for stalled in &mut all {
            stalled.write_all(&[b' '; 1_000]).unwrap();
        }
        // The server meanwhile reads the part, so that the body does not arrive at once.
        service.check("between the parts");
    }
    for stalled in &all {
        stalled.set_nonblocking(true).unwrap();
    }
    all
}

/// Sends a batch body of 100 KB in two parts, and returns its response.
fn send_long_batch(service: &Service) -> Reply {
    let items = vec![r#"{"key":"fast"}"#; 50].join(",");
    let body = format!(r#"{{"requests":[{items}]{}}}"#, " ".repeat(100_000));
    let (start, rest) = body.split_at(50_000);
    let head = format!(
        "POST /check/batch HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut client = service.client();
    client.send(format!("{head}{start}").as_bytes()).unwrap();
    pause();
    client.send(rest.as_bytes()).unwrap();
    client.reply().unwrap()
}

#[test]
fn stalled_bodies_delay_no_other() {
    let service = Service::start(&[]);
    let mut stalled = open_stalled(&service, 40);
    assert_eq!(send_long_batch(&service).status, 200);
    let is_open = |stalled: &mut TcpStream| {
        let read = stalled.read(&mut [0]);
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    assert!(stalled.iter_mut().all(is_open), "they are charged for what they sent only");
}

#[test]
fn announced_length_above_the_maximum_is_refused_at_once() {
    let service = Service::start(&[]);
    let head = |path: &str, expect: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n{expect}content-length: 3000000\r\n\r\n"
        )
    };
    for path in ["/check", "/check/batch", "/release"] {
        // Sends nothing more: the response must not wait for the body.
        let mut client = service.client();
        client.send(format!("{}{{", head(path, "")).as_bytes()).unwrap();
        assert_eq!(client.reply().unwrap().status, 413, "{path}");
    }
    let mut client = service.client();
    client.send(head("/check", "expect: 100-continue\r\n").as_bytes()).unwrap();
    assert_eq!(client.reply().unwrap().status, 413, "no 100 for a body that is refused");
    let mut client = service.client();
    let sent = client.send(&[head("/check", "").as_bytes(), &[b' '; 1_000_000]].concat());
    sent.expect("the server receives what is on the way");
    assert_eq!(client.reply().unwrap().status, 413);
}

#[test]
fn announced_length_alone_reserves_no_memory() {
    let service = Service::start(&[]);
    let announce = |path: &str, length: &str| {
        let mut slow = TcpStream::connect(service.address()).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n{length}"
        );
        slow.write_all(head.as_bytes()).unwrap();
        slow
    };
    // Together more than the memory budget of incomplete bodies.
    let held: Vec<TcpStream> = (0..100)
        .flat_map(|_| {
            [
                announce("/release", "content-length: 2000000\r\n\r\n{"),
                announce("/check/batch", "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"),
            ]
        })
        .collect();
    let body = r#"{"key":"late"}"#;
    let mut late = service.client();
    let start = Instant::now();
    late.send(
        format!(
            "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
             expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .as_bytes(),
    )
    .unwrap();
    assert_eq!(late.reply().unwrap().status, 100, "the server waits for the body");
    late.send(body.as_bytes()).unwrap();
    assert_eq!(late.reply().unwrap().json()["remaining"], 99);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?} with {} slow connections", held.len());
}
