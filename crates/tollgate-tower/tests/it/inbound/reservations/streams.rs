//! Streams through a real server.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http_body::Frame;
use parking_lot::Mutex;
use reqwest::Client;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tollgate::{Costs, Limiter};
use tollgate_testkit::wait::MAX_WAIT;
use tollgate_tower::Estimate;

use super::fixture::{AFTER_USED, FULL, WHILE_RESERVED, remaining, reserving};
use crate::inbound::fixture::{Store, layer_by_client, policy};

const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello wörld\"}}]}\n\n";
const END: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20}}\n\ndata: [DONE]\n\n";

/// A body of the chunks that the test sends.
struct Chunks(UnboundedReceiver<&'static str>);

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.0.poll_recv(context);
        chunk.map(|chunk| chunk.map(|chunk| Ok(Frame::data(Bytes::from_static(chunk.as_bytes())))))
    }
}

type Senders = Arc<Mutex<Vec<UnboundedSender<&'static str>>>>;

/// Responds with a stream, and keeps its sender for the test.
async fn stream(State(senders): State<Senders>) -> Response {
    let (sender, receiver) = unbounded_channel();
    senders.lock().push(sender);
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::new(Chunks(receiver))).unwrap()
}

/// A server behind a layer, whose streams the test sends.
struct Server {
    url: String,
    senders: Senders,
    client: Client,
}

impl Server {
    async fn start(layer: tollgate_tower::RateLimitLayerBuilder<Store>) -> Self {
        let senders = Senders::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let layer = layer.settle_by_usage().build().keep_body();
        let app = Router::new().fallback(stream).with_state(Arc::clone(&senders)).layer(layer);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, senders, client: Client::new() }
    }

    async fn post(&self) -> reqwest::Response {
        let request = self.client.post(&self.url).header("x-client-id", "c1").body("12345678");
        timeout(MAX_WAIT, request.send()).await.expect("the server responds").unwrap()
    }

    /// Starts a stream, and returns its sender.
    async fn start_stream(&self) -> (reqwest::Response, UnboundedSender<&'static str>) {
        let response = self.post().await;
        assert_eq!(response.status(), 200);
        (response, self.senders.lock().pop().unwrap())
    }
}

async fn chunk(response: &mut reqwest::Response) -> Option<Bytes> {
    timeout(MAX_WAIT, response.chunk()).await.expect("the chunk passes at once").unwrap()
}

/// Waits until this remains.
async fn assert_remaining(limiter: &Limiter<Store>, expected: [u64; 4]) {
    let reached = timeout(MAX_WAIT, async {
        while remaining(limiter).await != expected {
            tokio::task::yield_now().await;
        }
    });
    if reached.await.is_err() {
        assert_eq!(remaining(limiter).await, expected);
    }
}

#[tokio::test]
async fn a_stream_is_settled_when_it_ends() {
    let (builder, limiter) = reserving();
    let server = Server::start(builder).await;
    let (mut response, sender) = server.start_stream().await;
    let (head, tail) = END.split_at(40);
    for text in [TEXT, head, tail] {
        sender.send(text).unwrap();
        assert_eq!(chunk(&mut response).await.unwrap(), text);
        assert_eq!(remaining(&limiter).await, WHILE_RESERVED);
    }
    drop(sender);
    assert_eq!(chunk(&mut response).await, None);
    assert_remaining(&limiter, AFTER_USED).await;
}

#[tokio::test]
async fn a_disconnect_settles_with_what_was_streamed() {
    let (builder, limiter) = reserving();
    let server = Server::start(builder).await;
    let (mut response, sender) = server.start_stream().await;
    sender.send(TEXT).unwrap();
    assert_eq!(chunk(&mut response).await.unwrap(), TEXT);
    assert_eq!(remaining(&limiter).await, WHILE_RESERVED);
    drop(response);
    // The input of the estimate, 300, and 12 bytes of text: 3 tokens.
    assert_remaining(&limiter, [9, 697, 9370, 3]).await;
    assert!(sender.is_closed(), "the service can stop");
}

#[tokio::test]
async fn input_of_a_disconnected_stream_is_estimated_by_the_size_of_the_request() {
    let (builder, limiter) = reserving();
    let costs = Costs::of([("requests", 1), ("tokens", 500), ("money", 2600)]).unwrap();
    let server = Server::start(builder.reserve(move |_| Estimate::of(costs.clone()))).await;
    let (mut response, sender) = server.start_stream().await;
    sender.send(TEXT).unwrap();
    assert_eq!(chunk(&mut response).await.unwrap(), TEXT);
    drop(response);
    // 8 bytes of request are 2 tokens, 12 bytes of text are 3.
    assert_remaining(&limiter, [9, 995, 9966, 3]).await;
}

#[tokio::test]
async fn slots_are_held_until_streams_end() {
    let (builder, limiter) = reserving();
    let small = Costs::requests(1).and("tokens", 10).unwrap();
    let server = Server::start(builder.reserve(move |_| Estimate::of(small.clone()))).await;
    let first = server.start_stream().await;
    let second = server.start_stream().await;
    let third = server.start_stream().await;
    let refused = server.post().await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "30");
    assert_eq!(remaining(&limiter).await, [7, 970, 10_000, 0], "the refusal took nothing");
    // Ended by the service, by the client, and by the client before any text.
    let (mut response, sender) = first;
    sender.send(END).unwrap();
    drop(sender);
    while chunk(&mut response).await.is_some() {}
    drop(second);
    assert_remaining(&limiter, [7, 860, 9600, 2]).await;
    drop(third);
    assert_remaining(&limiter, [7, 860, 9600, 3]).await;
    assert_eq!(server.post().await.status(), 200);
    assert_ne!(remaining(&limiter).await, FULL);
}

/// Starts 60 streams at once. Returns those that were admitted.
async fn start_sixty(
    server: &Arc<Server>,
) -> (Vec<reqwest::Response>, Vec<UnboundedSender<&'static str>>) {
    let posts: Vec<_> = (0..60)
        .map(|_| {
            let server = Arc::clone(server);
            tokio::spawn(async move { server.post().await })
        })
        .collect();
    let mut admitted = Vec::new();
    for post in posts {
        let response = post.await.unwrap();
        match response.status().as_u16() {
            200 => admitted.push(response),
            status => assert_eq!(status, 429),
        }
    }
    (admitted, std::mem::take(&mut *server.senders.lock()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_streams_never_oversell_the_limit() {
    let rules = "  - name: llm
    per: [client]
    limits: [{ rate: 6000/min, unit: tokens, algorithm: token_bucket }]";
    let (builder, _) = layer_by_client(policy(rules));
    let costs = Costs::of([("tokens", 500)]).unwrap();
    let builder = builder.reserve(move |_| Estimate::of(costs.clone()));
    let server = Arc::new(Server::start(builder).await);
    // Each admitted stream reserves 500 tokens and uses 120 of them. 6000 → 1440 used → 4560 left → 9 more, and so on.
    let mut used = 0;
    for expected in [12, 9, 6, 5, 4] {
        let (responses, senders) = start_sixty(&server).await;
        assert_eq!(responses.len(), expected, "{used} tokens were used before");
        assert!(used + 500 * responses.len() <= 6000);
        used += 120 * responses.len();
        for sender in senders {
            sender.send(END).unwrap();
        }
        for mut response in responses {
            while chunk(&mut response).await.is_some() {}
        }
    }
    assert!(used <= 6000, "{used}");
}
