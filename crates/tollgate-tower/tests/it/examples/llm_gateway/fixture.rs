//! The LLM gateway with an upstream that streams at the pace of the test.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Router, body};
use bytes::Bytes;
use http_body::Frame;
use parking_lot::Mutex;
use reqwest::Client;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tollgate_testkit::wait::MAX_WAIT;

use crate::examples::process::Serving;

pub(super) const HELLO: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hello wörld\"}}],\"usage\":null}\n\n";
pub(super) const END: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":10}}\n\n\
    data: [DONE]\n\n";

/// What a key may spend each day.
pub(super) const BUDGET: u64 = 5_000_000;

/// A body of the chunks that the test sends.
pub(super) struct Chunks(UnboundedReceiver<&'static str>);

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

/// A request as the upstream receives it.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

/// An upstream that records requests and answers each with the next response.
#[derive(Default)]
pub(super) struct Upstream {
    pub(super) received: Mutex<Vec<Received>>,
    responses: Mutex<Vec<Response>>,
}

impl Upstream {
    async fn answer(State(upstream): State<Arc<Self>>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let body = body::to_bytes(body, 1 << 20).await.unwrap();
        upstream.received.lock().push(Received {
            path: parts.uri.to_string(),
            headers: parts.headers,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        });
        upstream.responses.lock().pop().expect("a response is prepared")
    }

    pub(super) fn respond_with_json(&self, status: u16, body: &Value) {
        let response =
            Response::builder().status(status).header("content-type", "application/json");
        self.responses.lock().push(response.body(Body::from(body.to_string())).unwrap());
    }

    /// The next response is streamed: returns the sender of its chunks.
    pub(super) fn respond_with_stream(&self) -> UnboundedSender<&'static str> {
        let (sender, receiver) = unbounded_channel();
        let response = Response::builder().header("content-type", "text/event-stream");
        let response = response.header("connection", "x-hop").header("x-hop", "1");
        self.responses.lock().push(response.body(Body::new(Chunks(receiver))).unwrap());
        sender
    }
}

/// The gateway with its upstream.
pub(super) struct Fixture {
    pub(super) upstream: Arc<Upstream>,
    gateway: Serving,
    client: Client,
}

impl Fixture {
    pub(super) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub(super) async fn start_with(environment: &[(&str, &str)]) -> Self {
        let upstream = Arc::new(Upstream::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/prefix/", listener.local_addr().unwrap());
        let app = Router::new().fallback(Upstream::answer).with_state(Arc::clone(&upstream));
        tokio::spawn(async move { axum::serve(listener, app).await });
        let gateway =
            Serving::start("llm_gateway", &[&[("UPSTREAM_URL", &*url)], environment].concat());
        Self { upstream, gateway, client: Client::new() }
    }

    pub(super) async fn post(&self, key: Option<&str>, body: &Value) -> reqwest::Response {
        let request = self.client.post(format!("{}/v1/chat/completions?a=b", self.gateway.url()));
        let request = key.into_iter().fold(request, reqwest::RequestBuilder::bearer_auth);
        let request = request.header("accept-encoding", "gzip").json(body);
        timeout(MAX_WAIT, request.send()).await.expect("the gateway responds").unwrap()
    }

    /// Returns what is left of the limit of `k1` with this name.
    pub(super) async fn left(&self, name: &str) -> u64 {
        let request = self.client.get(format!("{}/usage", self.gateway.url())).bearer_auth("k1");
        let limits: Value = request.send().await.unwrap().json().await.unwrap();
        limits[name]["remaining"].as_u64().unwrap_or_else(|| panic!("{limits}"))
    }

    /// Waits until `k1` has spent this much of its budget.
    pub(super) async fn assert_spent(&self, spent: u64) {
        let expected = BUDGET - spent;
        // The budget refills meanwhile, by 58 each second.
        let expected = expected..(expected + 58 * MAX_WAIT.as_secs()).min(BUDGET + 1);
        let reached = timeout(MAX_WAIT, async {
            while !expected.contains(&self.left("budget").await) {
                tokio::task::yield_now().await;
            }
        });
        if reached.await.is_err() {
            assert!(expected.contains(&self.left("budget").await), "{expected:?}");
        }
    }
}

pub(super) async fn chunk(response: &mut reqwest::Response) -> Option<Bytes> {
    timeout(MAX_WAIT, response.chunk()).await.expect("the chunk passes at once").unwrap()
}
