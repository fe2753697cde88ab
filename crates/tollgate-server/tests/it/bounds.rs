//! What is too large, too slow or too much.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::service::{Service, eventually};

/// The memory a process holds, in kilobytes.
fn resident(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id()));
    let status = status.expect("the process is there");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it has memory");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("a number")
}

#[test]
fn a_long_body_is_413_and_costs_no_memory() {
    let service = Service::start(&[]);
    service.check("warm");
    let before = resident(&service);
    for path in ["/check", "/check/batch"] {
        let mut client = service.client();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
             content-length: 1073741824\r\n\r\n"
        );
        client.send(head.as_bytes()).unwrap();
        let chunk = vec![b' '; 1 << 20];
        // The service stops listening at some point, which is its right.
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
    let grown = resident(&service).saturating_sub(before);
    assert!(grown < 8 * 1024, "{grown} kB more");
    assert_eq!(service.check("after")["remaining"], 99);
}

#[test]
fn a_body_of_the_most_bytes_is_read() {
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
fn a_long_head_is_refused() {
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
fn a_body_in_pieces_is_one_body() {
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
fn pipelined_requests_are_answered_in_order() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let body = r#"{"key":"p"}"#;
    let request = format!(
        "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.send(request.repeat(50).as_bytes()).unwrap();
    for left in (50..100).rev() {
        assert_eq!(client.reply().unwrap().json()["remaining"], left);
    }
}

#[test]
fn a_head_that_does_not_come_is_not_waited_for() {
    let service = Service::start(&[]);
    let mut slow = TcpStream::connect(service.address()).unwrap();
    slow.write_all(b"POST /check HTTP/1.1\r\nhost: t\r\n").unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(50))).unwrap();
    let began = Instant::now();
    let mut told = Vec::new();
    let _ = slow.read_to_end(&mut told);
    let took = began.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(40)).contains(&took), "{took:?}");
}

#[test]
fn no_more_connections_than_allowed_are_served_at_once() {
    let service = Service::start(&["--max-connections", "2"]);
    let mut held: Vec<Client> = (0..2).map(|_| service.client()).collect();
    for client in &mut held {
        assert_eq!(client.get("/healthz").status, 200);
    }
    let mut waiting = service.client();
    waiting.send(b"GET /healthz HTTP/1.1\r\nhost: t\r\n\r\n").unwrap();
    held.pop();
    assert_eq!(waiting.reply().unwrap().status, 200, "a place became free");
}

#[test]
fn a_crowd_waits_to_be_accepted_without_trying_again() {
    let service = Service::start(&[]);
    service.signal("STOP");
    // Who found no room would try again after a second, and then after longer and longer.
    let patience = Duration::from_secs(30);
    let crowd: Vec<TcpStream> = (0..400)
        .map(|_| TcpStream::connect_timeout(&service.address(), patience).expect("there is room"))
        .collect();
    service.signal("CONT");
    for mut waiting in crowd {
        waiting
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut told = String::new();
        waiting.read_to_string(&mut told).unwrap();
        assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    }
}

#[test]
fn without_file_descriptors_it_waits_and_recovers() {
    let service = Service::start(&[]);
    let limited = std::process::Command::new("prlimit")
        .args([&format!("--pid={}", service.id()), "--nofile=24:24"])
        .status()
        .expect("prlimit is there (Debian package util-linux)");
    assert!(limited.success());
    let mut held: Vec<Client> = Vec::new();
    for _ in 0..40 {
        held.push(service.client());
    }
    let busy = cpu_ticks(&service);
    service.wait_for_log("cannot accept a connection; retrying");
    drop(held);
    eventually("served again", || {
        let client = Client::try_connect(service.address());
        client.is_ok_and(|mut client| client.get("/healthz").status == 200)
    });
    assert!(cpu_ticks(&service) - busy < 100, "it must not spin");
}

fn cpu_ticks(service: &Service) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", service.id())).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let head = "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n";
    client.send(format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).unwrap();
    assert_eq!(client.reply().unwrap().status, 408);
}

#[test]
fn an_answer_that_is_not_read_is_not_waited_for() {
    let service = Service::start(&[]);
    let mut deaf = TcpStream::connect(service.address()).unwrap();
    deaf.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: t\r\n\r\n".repeat(100);
    // Until the service has given up on a client that asks and never reads.
    let began = Instant::now();
    while deaf.write_all(&request).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(120), "it is still being served");
    }
    assert_eq!(service.get("/healthz").status, 200);
}

#[test]
fn bodies_on_their_way_share_one_budget() {
    let service = Service::start(&[]);
    service.check("warm");
    let before = resident(&service);
    let head = "POST /release HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
                content-length: 2000000\r\n\r\n";
    let held: Vec<TcpStream> = (0..150)
        .map(|_| {
            let mut slow = TcpStream::connect(service.address()).unwrap();
            // Those beyond the budget are not read from, so they must not be waited for here.
            slow.set_nonblocking(true).unwrap();
            let _ = slow.write_all(head.as_bytes());
            let _ = slow.write_all(&vec![b' '; 1_900_000]);
            slow
        })
        .collect();
    assert_eq!(service.check("k")["remaining"], 99, "who sends all at once is served");
    let grown = resident(&service).saturating_sub(before);
    assert!(grown < 128 * 1024, "{grown} kB more for {} bodies", held.len());
}

#[test]
fn who_announces_much_and_sends_nothing_holds_up_nobody() {
    let service = Service::start(&[]);
    let announced = |path: &str, how: &str| {
        let mut slow = TcpStream::connect(service.address()).unwrap();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n{how}");
        slow.write_all(head.as_bytes()).unwrap();
        slow
    };
    // Together more than all bodies that are on their way may have.
    let held: Vec<TcpStream> = (0..100)
        .flat_map(|_| {
            [
                announced("/release", "content-length: 2000000\r\n\r\n{"),
                announced("/check/batch", "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"),
            ]
        })
        .collect();
    let body = r#"{"key":"late"}"#;
    let mut late = service.client();
    let began = Instant::now();
    late.send(
        format!(
            "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
             expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .as_bytes(),
    )
    .unwrap();
    assert_eq!(late.reply().unwrap().status, 100, "the body is being waited for");
    late.send(body.as_bytes()).unwrap();
    assert_eq!(late.reply().unwrap().json()["remaining"], 99);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?} beside {} slow ones", held.len());
}
