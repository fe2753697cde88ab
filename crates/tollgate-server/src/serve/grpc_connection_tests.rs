//! Connections of the gRPC front end, by the frames that they send, on a paused clock.

use std::io;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tollgate_testkit::http2::{
    ACK, DATA, END_STREAM, GOAWAY, HEADERS, PING, frame, hello, message, open_stream,
};

use crate::grpc::Grpc;
use crate::listener::serve_stream;
use crate::serve::fixtures::{PEER, front_end_counters, service};

/// A request for one descriptor: domain `d`, entry `k`.
const REQUEST: &[u8] = b"\x0a\x01d\x12\x05\x0a\x03\x0a\x01k";

/// The server's end of a connection, which counts writes.
struct CountedWrites {
    stream: DuplexStream,
    writes: Arc<AtomicUsize>,
    /// Whether writes wait for ever, as to a client that reads nothing.
    is_blocked: Arc<AtomicBool>,
}

impl AsyncRead for CountedWrites {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CountedWrites {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_blocked.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        self.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A client that sends frames by hand.
struct Client {
    stream: DuplexStream,
    /// Writes of the server.
    writes: Arc<AtomicUsize>,
    is_blocked: Arc<AtomicBool>,
    /// The server's task.
    server: JoinHandle<()>,
    /// Dropped to drain the server.
    _drain: watch::Sender<()>,
}

impl Client {
    /// Connects, and makes a first call.
    async fn connect() -> Self {
        let service = service().await;
        let (stream, server) = duplex(64 * 1024);
        let (drain, writes) = (watch::Sender::new(()), Arc::default());
        let is_blocked = Arc::new(AtomicBool::new(false));
        let (subscribed, counters) = (drain.subscribe(), front_end_counters("grpc"));
        let server = CountedWrites {
            stream: server,
            writes: Arc::clone(&writes),
            is_blocked: Arc::clone(&is_blocked),
        };
        let server = tokio::spawn(async move {
            let protocol = Arc::new(Grpc::new(service, None));
            serve_stream(protocol, server, PEER, (subscribed, counters)).await;
        });
        let mut client = Self { stream, writes, is_blocked, server, _drain: drain };
        client.send(&[hello(), call(0)].concat()).await;
        client.receive_responses(1).await;
        client
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("it is sent");
    }

    /// Returns the kind, the flags and the payload of the next frame; `None` if the connection is closed.
    async fn receive(&mut self) -> Option<(u8, u8, Vec<u8>)> {
        let (kind, flags, _, payload) = self.receive_frame().await?;
        Some((kind, flags, payload))
    }

    /// As [`receive`](Self::receive), with the stream.
    async fn receive_frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        self.stream.read_exact(&mut payload).await.expect("a complete frame");
        Some((kind, flags, u32::from_be_bytes(stream), payload))
    }

    /// Receives frames until a message, and returns its stream.
    async fn receive_message(&mut self) -> u32 {
        loop {
            let (kind, _, stream, _) = self.receive_frame().await.expect("the connection is open");
            if kind == DATA {
                return stream;
            }
        }
    }

    /// Receives this many responses, each of headers, a message and trailers.
    async fn receive_responses(&mut self, count: usize) {
        let mut ended = 0;
        let mut messages = 0;
        while ended < count {
            match self.receive().await.expect("the connection is open") {
                (DATA, _, payload) => {
                    messages += 1;
                    // The overall code is OK.
                    assert_eq!(payload.get(5..7), Some(&[8, 1][..]));
                }
                (HEADERS, flags, _) => ended += usize::from(flags & END_STREAM),
                _ => {}
            }
        }
        assert_eq!(messages, count);
    }

    /// Asserts that the server closes the connection so many seconds from now, after a GOAWAY.
    async fn assert_closed_after(&mut self, seconds: RangeInclusive<u64>, answers_pings: bool) {
        let (start, mut has_goaway) = (Instant::now(), false);
        while let Some((kind, flags, payload)) = self.receive().await {
            has_goaway |= kind == GOAWAY;
            if kind == PING && flags & ACK == 0 && answers_pings {
                let _ = self.stream.write_all(&frame(PING, ACK, 0, &payload)).await;
            }
        }
        let waited = start.elapsed().as_secs();
        assert!(seconds.contains(&waited) && has_goaway, "{waited} s, GOAWAY {has_goaway}");
    }
}

/// Encodes the message of stream `2 * number + 1`.
fn data(number: u32) -> Vec<u8> {
    frame(DATA, END_STREAM, 2 * number + 1, &message(REQUEST))
}

/// Encodes a call on stream `2 * number + 1`.
fn call(number: u32) -> Vec<u8> {
    [open_stream(number, 0), data(number)].concat()
}

#[tokio::test(start_paused = true)]
async fn calls_that_arrive_together_are_answered_in_one_write() {
    let mut client = Client::connect().await;
    let before = client.writes.load(Ordering::Relaxed);
    let calls: Vec<u8> = (1..=10).flat_map(call).collect();
    client.send(&calls).await;
    client.receive_responses(10).await;
    assert_eq!(client.writes.load(Ordering::Relaxed) - before, 1);
}

#[tokio::test(start_paused = true)]
async fn message_that_arrives_after_its_headers_is_answered() {
    let mut client = Client::connect().await;
    client.send(&open_stream(1, 0)).await;
    sleep(Duration::from_secs(5)).await;
    // Others do not wait for it.
    client.send(&call(2)).await;
    client.receive_responses(1).await;
    client.send(&data(1)).await;
    client.receive_responses(1).await;
    // In parts, of which the last is empty.
    let (begin, rest) = (frame(DATA, 0, 7, &message(REQUEST)), frame(DATA, END_STREAM, 7, &[]));
    client.send(&[open_stream(3, 0), begin, rest].concat()).await;
    client.receive_responses(1).await;
}

#[tokio::test(start_paused = true)]
async fn calls_with_many_descriptors_do_not_delay_others() {
    let mut client = Client::connect().await;
    let many = [&b"\x0a\x01d"[..], &b"\x12\x05\x0a\x03\x0a\x01k".repeat(100)].concat();
    let long = frame(DATA, END_STREAM, 3, &message(&many));
    client.send(&[open_stream(1, 0), long, call(2)].concat()).await;
    // The message of stream 5 is sent first, although its call came second.
    assert_eq!(client.receive_message().await, 5);
    assert_eq!(client.receive_message().await, 3);
}

#[tokio::test(start_paused = true)]
async fn client_that_neither_reads_nor_answers_pings_is_disconnected() {
    let client = Client::connect().await;
    client.is_blocked.store(true, Ordering::Relaxed);
    let start = Instant::now();
    client.server.await.expect("no panic");
    let waited = start.elapsed().as_secs();
    assert!((40..=80).contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn client_without_requests_must_answer_pings() {
    Client::connect().await.assert_closed_after(38..=42, false).await;
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed_after_two_minutes() {
    let mut client = Client::connect().await;
    for number in 1..=5 {
        sleep(Duration::from_secs(15)).await;
        client.send(&call(number)).await;
        client.receive_responses(1).await;
    }
    client.assert_closed_after(90..=125, true).await;
}
