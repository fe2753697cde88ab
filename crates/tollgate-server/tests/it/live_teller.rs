//! Somebody who speaks as `/api/live` does, or worse.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// How one connection is answered. After the last of them, all are answered as that was.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Says this and hangs up.
    Says(String),
    /// Says this and holds the line.
    Holds(String),
    /// Says this and then the same letter for ever.
    Endless(String),
}

pub(crate) struct Teller {
    pub(crate) url: String,
    /// The heads of all requests.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Teller {
    pub(crate) fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heads, mut answers) = (Arc::clone(&asked), answers.to_vec());
        answers.reverse();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let last = answers.last().cloned();
                let answer = if answers.len() > 1 { answers.pop() } else { last };
                let heads = Arc::clone(&heads);
                thread::spawn(move || attend(&stream, &answer.expect("there is one"), &heads));
            }
        });
        Self { url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nobody panics here").clone()
    }
}

fn attend(mut stream: &TcpStream, answer: &Answer, heads: &Mutex<Vec<String>>) -> Option<()> {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    heads.lock().ok()?.push(head);
    match answer {
        Answer::Says(text) => stream.write_all(text.as_bytes()).ok(),
        Answer::Holds(text) => {
            stream.write_all(text.as_bytes()).ok()?;
            // Until the other side has enough.
            reader.read(&mut [0]).ok().map(drop)
        }
        Answer::Endless(text) => {
            stream.write_all(text.as_bytes()).ok()?;
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
            None
        }
    }
}

/// A refusal as the service words it.
pub(crate) fn problem(status: u16, detail: &str) -> Answer {
    let body = json!({"title": "no", "status": status, "detail": detail}).to_string();
    Answer::Says(format!(
        "HTTP/1.1 {status} No\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n\r\n";

/// The beginning of a stream: a policy, a history, and a frame for each of these seconds.
pub(crate) fn stream(seconds: &[i64]) -> String {
    let rule = json!({"rule": "default", "mode": "enforce", "distributed": "on", "on_store_loss": "local",
        "per": ["key"], "limits": ["100/60s"], "next": []});
    let policy = json!({"version": "v1", "file": null, "rules_total": 1, "error": null, "warnings": [],
        "rules": [rule]});
    let mut text = format!("{HEAD}: hello\n\n");
    text.push_str(&event("policy", &policy));
    text.push_str(&event("history", &json!({"points": []})));
    seconds.iter().for_each(|second| text.push_str(&event("frame", &frame(*second))));
    text
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// A frame whose keys are the worst.
fn frame(second: i64) -> Value {
    let key = |key: &str, count: u32| {
        json!({"key": key, "tenant": "", "rule": "default", "limit": "60s", "count": count,
            "last_at": second * 1000, "facts": null})
    };
    json!({"t": second * 1000, "node": "web-1", "scope": "node", "points": [],
        "now": {"allowed": 12, "refused": 3, "degraded": 0, "errors": 0, "p50_us": 210, "p99_us": null},
        "store": {"kind": "memory", "address": null, "server": null, "breaker": null, "keys": 7,
            "max_keys": 1000, "warning": null},
        "nodes": [],
        "refused": [key("c1", 37), key("\u{1b}[2J\u{9b}31m\u{202e}x y", 2)]})
}
