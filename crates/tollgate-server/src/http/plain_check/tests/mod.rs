//! Connections with plain checks, over streams in memory.

mod differential;
mod lifecycle;
mod recording_stream;

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;

use crate::api::Service;
use crate::http::{Http, Surface};
use crate::listener::serve_stream;
use crate::serve::fixtures::{PEER, front_end_counters, service};
use crate::settings::{AllowedHosts, ForwardAuthSettings};
use recording_stream::{RecordingStream, Writes};

/// Any request that is not a plain check: the connection continues with hyper.
const NOT_PLAIN: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: t\r\n\r\n";

/// One connection to the HTTP front end.
struct Connection {
    client: DuplexStream,
    /// Dropped to drain the connection.
    drain: watch::Sender<()>,
    writes: Writes,
}

impl Connection {
    /// Connects to a service, with buffers of `capacity` bytes in each direction.
    fn open(service: &Arc<Service>, capacity: usize) -> Self {
        let (client, server) = duplex(capacity);
        let (server, writes) = RecordingStream::new(server);
        let (drain, counters) = (watch::Sender::new(()), front_end_counters("http"));
        let (subscribed, service) = (drain.subscribe(), Arc::clone(service));
        tokio::spawn(async move {
            let http = Http::new(
                service,
                Surface::All,
                ForwardAuthSettings::default(),
                AllowedHosts::default(),
            );
            serve_stream(Arc::new(http), server, PEER, (subscribed, counters)).await;
        });
        Self { client, drain, writes }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).await.expect("the server reads");
    }

    /// Reads until the end of the connection.
    async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        self.client.read_to_end(&mut bytes).await.expect("a proper end");
        String::from_utf8(bytes).expect("responses are text")
    }

    /// Reads one response with a body.
    async fn response(&mut self) -> String {
        let mut text = String::new();
        loop {
            let byte = self.client.read_u8().await.expect("a response");
            text.push(char::from(byte));
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.split_once("content-length: ").expect("a length").1;
            let length = length.lines().next().expect("a line");
            if length == body.len().to_string() {
                return text;
            }
        }
    }
}

fn check_with(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST /check HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn check(key: &str) -> Vec<u8> {
    check_with("", &format!(r#"{{"key":"{key}"}}"#))
}

/// Returns the checks of so many keys, pipelined.
fn pipeline(count: usize) -> Vec<u8> {
    (0..count).flat_map(|number| check(&format!("client-{number}"))).collect()
}
