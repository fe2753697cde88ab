//! Fake server for `/api/live` with scripted and hostile responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// Response to one connection.
#[derive(Debug, Clone)]
pub(crate) enum StreamScript {
    /// Sends the text and closes the connection.
    Close(String),
    /// Sends the text and keeps the connection open.
    Hold(String),
    /// Sends the text, then one letter endlessly.
    Endless(String),
}

pub(crate) struct FakeLiveServer {
    pub(crate) url: String,
    /// Heads of all requests.
    requests: Arc<Mutex<Vec<String>>>,
}

impl FakeLiveServer {
    /// Starts a server with one script per connection; further connections repeat the last script.
    pub(crate) fn start(scripts: &[StreamScript]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("a bound address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (heads, mut scripts) = (Arc::clone(&requests), scripts.to_vec());
        scripts.reverse();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let last = scripts.last().cloned();
                let script = if scripts.len() > 1 { scripts.pop() } else { last };
                let heads = Arc::clone(&heads);
                thread::spawn(move || handle(&stream, &script.expect("a script"), &heads));
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no thread panicked").clone()
    }
}

fn handle(mut stream: &TcpStream, script: &StreamScript, heads: &Mutex<Vec<String>>) -> Option<()> {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    heads.lock().ok()?.push(head);
    match script {
        StreamScript::Close(text) => stream.write_all(text.as_bytes()).ok(),
        StreamScript::Hold(text) => {
            stream.write_all(text.as_bytes()).ok()?;
            // Blocks until the client closes the connection.
            reader.read(&mut [0]).ok().map(drop)
        }
        StreamScript::Endless(text) => {
            stream.write_all(text.as_bytes()).ok()?;
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
            None
        }
    }
}

/// Returns a problem response, as the service sends it.
pub(crate) fn problem(status: u16, detail: &str) -> StreamScript {
    let body = json!({"title": "no", "status": status, "detail": detail}).to_string();
    StreamScript::Close(format!(
        "HTTP/1.1 {status} No\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n\r\n";

/// Returns the start of a stream: a policy, a history, and a frame for each of these seconds.
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

/// Returns a frame whose keys contain terminal control sequences.
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
