//! Sends checks at a constant rate; some are refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Scale, wait_until};
use crate::Outcome;

const CONNECTIONS: u32 = 4;
/// One in this many checks is for a blocked key.
const REFUSED_EVERY: u32 = 10;
/// Maximum number of checks in a batch request.
const MAX_BATCH: u32 = 1000;

/// A running load. Stopped with [`Load::end`].
#[derive(Debug)]
pub(super) struct Load {
    threads: Vec<JoinHandle<Outcome<()>>>,
    answered: Arc<AtomicU32>,
    is_stopped: Arc<AtomicBool>,
}

impl Load {
    /// Uses every key once, then sends checks at the rate of `scale`.
    pub(super) fn begin(node: SocketAddr, scale: Scale) -> Outcome<Self> {
        fill(node, scale.keys)?;
        let answered: Arc<AtomicU32> = Arc::default();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let interval = Duration::from_secs(1) * CONNECTIONS / scale.rate;
        let mut threads = Vec::new();
        for first in 0..CONNECTIONS {
            let (answered, is_stopped) = (Arc::clone(&answered), Arc::clone(&is_stopped));
            let mut connection = Connection::open(node)?;
            threads.push(thread::spawn(move || {
                let (mut next, mut nth) = (Instant::now(), first);
                while !is_stopped.load(Ordering::Relaxed) {
                    connection.post("/check", &check_body(nth, scale.keys))?;
                    answered.fetch_add(1, Ordering::Relaxed);
                    nth = nth.wrapping_add(CONNECTIONS);
                    next += interval;
                    wait_until(next);
                }
                Ok(())
            }));
        }
        Ok(Self { threads, answered, is_stopped })
    }

    /// Returns the number of completed checks.
    pub(super) fn answered(&self) -> u32 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Stops the load.
    pub(super) fn end(self) -> Outcome<()> {
        self.is_stopped.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| "a load thread panicked")??;
        }
        Ok(())
    }
}

fn check_body(nth: u32, keys: u32) -> String {
    if nth.is_multiple_of(REFUSED_EVERY) {
        let refused = nth / REFUSED_EVERY % 50;
        return format!(r#"{{"key":"refused:{refused}","limits":[{{"limit":0}}]}}"#);
    }
    format!(r#"{{"key":"user:{}"}}"#, nth % keys)
}

fn fill(node: SocketAddr, keys: u32) -> Outcome<()> {
    let mut connection = Connection::open(node)?;
    for first in (0..keys).step_by(MAX_BATCH as usize) {
        let some =
            (first..keys.min(first + MAX_BATCH)).map(|key| format!(r#"{{"key":"user:{key}"}}"#));
        let batch = some.collect::<Vec<_>>().join(",");
        connection.post("/check/batch", &format!(r#"{{"requests":[{batch}]}}"#))?;
    }
    Ok(())
}

/// A connection with one request in flight.
#[derive(Debug)]
struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(node: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(node)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    fn post(&mut self, path: &str, body: &str) -> Outcome<()> {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: node\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut line, mut length) = (String::new(), 0);
        self.stream.read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 200") {
            return Err(format!("unexpected response to {path}: {line}").into());
        }
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line)?;
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut response = vec![0; length];
        self.stream.read_exact(&mut response)?;
        Ok(())
    }
}
