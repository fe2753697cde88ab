//! RESP: pipelined commands are answered in order, wherever the input is split.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;

use tollgate_testkit::random::Random;
use tollgate_testkit::server::{Flavor, Server};

use crate::redis::LONG_TIMEOUT;
use crate::resp_client::{RespClient, encode, readable, start};
use crate::service::{Scratch, eventually};

const COMMANDS: usize = 1000;

/// Commands whose replies do not depend on time or on each other.
fn pipeline(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::new();
    for number in 0..COMMANDS {
        let text = number.to_string();
        let key: Vec<u8> =
            (0..random.within(1, 40)).map(|_| random.draw().to_le_bytes()[0]).collect();
        bytes.extend(match random.within(0, 7) {
            0 => b"PING\r\n".to_vec(),
            1 => format!("ECHO \"{text} \\x00\"\n").into_bytes(),
            2 => encode(&[&b"CL.THROTTLE"[..], &key, text.as_bytes(), b"1", b"60", b"0"]),
            3 => encode(&[&b"TOLLGATE.PEEK"[..], &[&b"client="[..], &key].concat()]),
            4 => encode(&["UNKNOWN", &text]),
            5 => encode(&["CL.THROTTLE", "k", "-1", "1", &text]),
            6 => [&b"\r\n*0\r\n"[..], &encode(&["ECHO", &text])].concat(),
            _ => encode(&[&b"ECHO"[..], &key.repeat(20)]),
        });
    }
    bytes
}

/// Sends the input in these chunks, then QUIT, and returns all replies.
fn replies(address: std::net::SocketAddr, chunks: Vec<Vec<u8>>) -> Vec<u8> {
    let mut stream = RespClient::tcp(address);
    let mut reader = stream.try_clone().expect("a second handle");
    let writer = thread::spawn(move || {
        for chunk in chunks {
            stream.write_all(&chunk).expect("it is sent");
        }
        stream.write_all(b"QUIT\r\n").expect("it is sent");
        stream
    });
    let mut replies = Vec::new();
    reader.read_to_end(&mut replies).expect("the replies");
    drop(writer.join().expect("the writer ends"));
    replies
}

#[test]
fn any_split_of_the_input_gives_the_same_replies() {
    let (_service, address) = start(&[]);
    let input = pipeline(1);
    let whole = replies(address, vec![input.clone()]);
    let count = whole.windows(2).filter(|bytes| bytes == b"\r\n").count();
    assert!(count >= COMMANDS, "{count}");
    // At every kind of boundary: each byte alone, lines, after CR, fixed sizes and random ones.
    let after = |end: u8| input.split_inclusive(|byte| *byte == end).map(<[u8]>::to_vec).collect();
    let mut splits: Vec<Vec<Vec<u8>>> = vec![after(b'\n'), after(b'\r'), after(b'$'), after(b'*')];
    for size in [1, 2, 3, 7, 64, 1023, 1024, 4096, 65_536] {
        splits.push(input.chunks(size).map(<[u8]>::to_vec).collect());
    }
    let mut random = Random::new(2);
    for _ in 0..20 {
        let (mut rest, mut chunks) = (&input[..], Vec::new());
        while !rest.is_empty() {
            let length = usize::try_from(random.magnitude(9000)).expect("small").min(rest.len());
            let (chunk, after) = rest.split_at(length);
            chunks.push(chunk.to_vec());
            rest = after;
        }
        splits.push(chunks);
    }
    for chunks in splits {
        let count = chunks.len();
        assert!(replies(address, chunks) == whole, "other replies after {count} writes");
    }
}

#[test]
fn takes_of_one_pipeline_are_decided_in_order() {
    let redis = Server::start(Flavor::Redis);
    let url = redis.url();
    for args in [vec![], [&["--redis", &*url][..], &LONG_TIMEOUT].concat()] {
        let (_service, address) = start(&args);
        let mut client = RespClient::connect(address);
        client.send(&encode(&["CL.THROTTLE", "k", "499", "1", "86400"]).repeat(COMMANDS)).unwrap();
        for number in 0..500 {
            let reply = readable(&client.reply().unwrap());
            assert!(
                reply.starts_with(&format!("[0 500 {} -1 ", 499 - number)),
                "{number}: {reply}"
            );
        }
        for number in 500..COMMANDS {
            let reply = readable(&client.reply().unwrap());
            assert!(reply.starts_with("[1 500 0 "), "{number}: {reply}");
        }
        // A command that decides nothing, an error and another verb keep their places.
        let mixed =
            ["TOLLGATE.CHECK", "PING", "TOLLGATE.PEEK", "X", "TOLLGATE.REFUND", "TOLLGATE.CHECK"];
        client.send(&mixed.map(|name| encode(&[name, "k"])).concat()).unwrap();
        let replies: Vec<String> =
            mixed.iter().map(|_| readable(&client.reply().unwrap())).collect();
        let starts = ["[1 100 99 ", "k", "[1 100 99 ", "-ERR unknown", "[1 100 100 ", "[1 100 99 "];
        for (reply, start) in replies.iter().zip(starts) {
            assert!(reply.starts_with(start), "{replies:?}");
        }
    }
}

#[test]
fn pipelined_decisions_share_calls_to_redis() {
    let redis = Server::start(Flavor::Redis);
    let url = redis.url();
    let (_service, address) = start(&[&["--redis", &*url][..], &LONG_TIMEOUT].concat());
    let calls = || {
        let stats = redis.raw().call(&["INFO", "commandstats"]);
        let calls = stats.text().lines().filter_map(|line| {
            let line = line
                .strip_prefix("cmdstat_evalsha:calls=")
                .or_else(|| line.strip_prefix("cmdstat_fcall:calls="))?;
            line.split(',').next()?.parse::<usize>().ok()
        });
        calls.sum::<usize>()
    };
    let mut client = RespClient::connect(address);
    client.call("CL.THROTTLE warm 1 1 60");
    let before = calls();
    let commands: Vec<Vec<u8>> =
        (0..640).map(|n| encode(&["CL.THROTTLE", &format!("k{n}"), "1", "1", "3600"])).collect();
    client.send(&commands.concat()).unwrap();
    for _ in 0..640 {
        assert!(readable(&client.reply().unwrap()).starts_with("[0 2 1 -1 "));
    }
    let made = calls() - before;
    assert!(made < 200, "{made} calls for 640 decisions");
}

#[test]
fn large_replies_are_sent_in_parts() {
    let (service, address) = start(&[]);
    let mut client = RespClient::connect(address);
    client.call("PING");
    let before = tollgate_testkit::process_stats::rss(service.id());
    let stream = RespClient::tcp(address);
    let mut reader = stream.try_clone().unwrap();
    // 8 bytes of input cause kilobytes of replies.
    let writer = thread::spawn(move || {
        let mut stream = stream;
        stream.write_all(&b"COMMAND\n".repeat(10_000)).unwrap();
        stream.write_all(b"QUIT\n").unwrap();
        stream
    });
    assert_eq!(client.call("PING"), "PONG");
    let mut bytes = vec![0; 1 << 20];
    let mut read_total = 0;
    while let Ok(read @ 1..) = reader.read(&mut bytes) {
        read_total += read;
    }
    drop(writer.join());
    assert!(read_total > 10_000_000, "{read_total}");
    let grown = tollgate_testkit::process_stats::peak(service.id()).saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes more");
}

/// A policy with one slot per client, which outlasts any test.
const SLOTS: &str = "
version: 1
rules:
  - { name: jobs, match: { path: /jobs }, limits: [{ concurrency: 1, ttl: 1h }] }
";

/// Sends two checks for slots between other commands, ends the input, and returns the replies.
fn replies_after_end(address: std::net::SocketAddr, round: usize) -> [String; 4] {
    let mut stream = RespClient::tcp(address);
    let check = |name: &str| format!("TOLLGATE.CHECK {name}{round} path=/jobs\r\n");
    let commands = format!("PING\r\n{}ECHO x\r\n{}", check("a"), check("b"));
    stream.write_all(commands.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut client = RespClient::over(stream);
    let replies = [(); 4].map(|()| readable(&client.reply().expect("a reply")));
    client.expect_end();
    replies
}

#[test]
fn client_that_ends_its_input_receives_all_replies_but_permits() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", SLOTS);
    let (_service, address) = start(&["--policy", &policy]);
    let mut other = RespClient::connect(address);
    for round in 0..30 {
        let [first, a, third, b] = replies_after_end(address, round);
        assert_eq!((&*first, &*third), ("PONG", "x"));
        for (name, reply) in [("a", a), ("b", b)] {
            // The end of the input may arrive after the permit is sent.
            let is_delivered = reply.starts_with("[1 1 0 ");
            let is_withheld = reply.starts_with("-ERR the client has closed its side");
            assert!(is_delivered || is_withheld, "{reply}");
            let check = format!("TOLLGATE.CHECK {name}{round} path=/jobs");
            let next = if is_delivered { "[0 1 0 " } else { "[1 1 0 " };
            eventually("the slot is held or free", || other.call(&check).starts_with(next));
        }
    }
}
