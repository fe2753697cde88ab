//! RESP: hostile input gets an error or a closed connection. Other connections are served, and memory stays bounded.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;

use tollgate_testkit::process_stats::rss;

use crate::resp_client::{RespClient, start_with};
use crate::resp_hostile_inputs::{Kind, kinds};
use crate::service::{Service, WITHOUT_HUGE_PAGES, eventually};

const TOKEN: &str = "a-token-for-checks-0123456789abcdef";
/// Maximum growth of the resident memory in bytes.
const MAX_GROWTH: u64 = 8 << 20;

/// Sends the input, ends it, and returns what the server sends until it closes the connection.
fn exchange(address: SocketAddr, input: &[u8]) -> Vec<u8> {
    let stream = RespClient::tcp(address);
    let mut writer = stream.try_clone().expect("a second handle");
    let input = input.to_vec();
    let sending = thread::spawn(move || {
        // The server may close the connection before it has read all.
        let _ = writer.write_all(&input);
        let _ = writer.shutdown(Shutdown::Write);
    });
    let (mut reader, mut replies) = (stream, Vec::new());
    // A reset is a closed connection, too.
    let ended = reader.read_to_end(&mut replies);
    if let Err(error) = ended {
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::ConnectionReset,
            "the connection hangs: {error}"
        );
    }
    sending.join().expect("the writer ends");
    replies
}

#[test]
fn there_are_enough_kinds_and_inputs() {
    let kinds = kinds();
    let names: BTreeSet<&str> = kinds.iter().map(|kind| kind.name).collect();
    assert_eq!(names.len(), kinds.len(), "names are unique");
    let inputs: BTreeSet<&Vec<u8>> = kinds.iter().flat_map(|kind| &kind.inputs).collect();
    assert!(names.len() >= 50 && inputs.len() >= 500, "{} {}", names.len(), inputs.len());
}

fn survives(token: Option<&str>) {
    let token_variable = token.map(|token| ("TOLLGATE_CHECK_TOKEN", token));
    let environment: Vec<_> = token_variable.into_iter().chain([WITHOUT_HUGE_PAGES]).collect();
    let (service, address) = start_with(&[], &environment);
    let mut steady = RespClient::connect(address);
    if let Some(token) = token {
        assert_eq!(steady.call(&format!("AUTH {token}")), "OK");
    }
    let before = rss(service.id());
    for Kind { name, inputs } in kinds() {
        for input in inputs {
            let replies = exchange(address, &input);
            let is_reply = replies.first().is_none_or(|byte| b"+-:$*".contains(byte));
            assert!(
                is_reply && (replies.is_empty() || replies.ends_with(b"\r\n")),
                "{name}: {:?}",
                replies.escape_ascii().to_string()
            );
        }
        assert_eq!(steady.call("PING"), "PONG", "{name}");
    }
    let grown = rss(service.id()).saturating_sub(before);
    println!("{grown} bytes more");
    assert!(grown < MAX_GROWTH, "{grown} bytes more");
    assert!(steady.call("TOLLGATE.CHECK steady").starts_with("[1 100 99 "));
    let (status, log) = service.stop();
    assert!(status.success() && !log.contains("panic"), "{log}");
}

#[test]
fn hostile_input_of_clients_is_survived() {
    survives(None);
}

#[test]
fn hostile_input_before_authentication_is_survived() {
    survives(Some(TOKEN));
}

#[test]
fn incomplete_commands_of_many_connections_use_little_memory() {
    let (service, address) = start_with(&[], &[WITHOUT_HUGE_PAGES]);
    let mut steady = RespClient::connect(address);
    assert_eq!(steady.call("PING"), "PONG");
    let before = rss(service.id());
    // Announces much and sends nothing of it.
    let held: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = RespClient::tcp(address);
            stream.write_all(b"*64\r\n$60000\r\n").expect("it is sent");
            stream
        })
        .collect();
    assert_eq!(steady.call("PING"), "PONG");
    let grown = rss(service.id()).saturating_sub(before);
    assert!(grown < MAX_GROWTH, "{grown} bytes more for {} connections", held.len());
}

/// Sends incomplete HTTP bodies that together need more than the memory of incomplete requests.
fn exhaust_memory(service: &Service) -> Vec<TcpStream> {
    let head = "POST /release HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
                content-length: 2000000\r\n\r\n";
    let begin = [head.as_bytes(), &[b' '; 1_000_000]].concat();
    let send = |_| {
        let mut stream = TcpStream::connect(service.address()).expect("it accepts connections");
        // Fails if the server has dropped the request meanwhile.
        let _ = stream.write_all(&begin);
        stream.set_nonblocking(true).expect("it can");
        stream
    };
    (0..80).map(send).collect()
}

/// Returns whether the connection has a response with status 408.
fn is_dropped(stream: &mut TcpStream) -> bool {
    let mut start = [0; 12];
    stream.peek(&mut start).is_ok_and(|length| start[..length] == *b"HTTP/1.1 408")
}

#[test]
fn long_commands_share_the_memory_of_incomplete_requests() {
    let (service, address) = start_with(&[], &[]);
    let mut steady = RespClient::connect(address);
    let long = "x".repeat(60_000);
    let mut held = exhaust_memory(&service);
    assert_eq!(steady.call("PING"), "PONG", "a short command needs no memory");
    assert_eq!(steady.call_with(&["ECHO", &long]), long, "slower requests are dropped for it");
    eventually("a request that stalls is dropped", || held.iter_mut().any(is_dropped));
    assert!(!held.iter_mut().all(is_dropped), "not more than necessary");
}
