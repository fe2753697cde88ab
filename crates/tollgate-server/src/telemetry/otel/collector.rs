//! The way to the collector: HTTP on a runtime of its own, driven by the exporter's thread. Nothing of it
//! runs among the requests of the service, and nothing of it outlives the thread.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{info, warn};

/// The most bytes of an answer. It says how many spans were refused, and why.
const MAX_ANSWER: usize = 64 * 1024;

/// How often at most it is told that the collector cannot be reached.
const RARELY: Duration = Duration::from_mins(5);

/// One collector.
pub(super) struct Collector {
    address: String,
    patience: Duration,
    runtime: Runtime,
    told: Mutex<Told>,
}

/// What the log says of the collector.
#[derive(Debug, Default)]
struct Told {
    lost: Option<Instant>,
    is_lost: bool,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Collector {
    /// The one at `host:port`, which has so long for each answer.
    pub(super) fn new(address: String, patience: Duration) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { address, patience, runtime, told: Mutex::default() })
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answered = self.runtime.block_on(async {
            match timeout(self.patience, exchange(&self.address, request)).await {
                Ok(answered) => answered,
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        });
        match &answered {
            Ok(response) if response.status().is_success() => self.note_success(),
            Ok(response) => self.note_failure(&format!("status {}", response.status().as_u16())),
            Err(error) => self.note_failure(&error.to_string()),
        }
        answered
    }

    fn note_failure(&self, reason: &str) {
        let mut told = self.told.lock();
        if told.lost.is_none_or(|at| at.elapsed() > RARELY) {
            *told = Told { lost: Some(Instant::now()), is_lost: true };
            warn!(collector = self.address, reason, "traces cannot be exported, and are dropped");
        }
    }

    fn note_success(&self) {
        let mut told = self.told.lock();
        if told.is_lost {
            told.is_lost = false;
            info!(collector = self.address, "traces are exported again");
        }
    }
}

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Answering<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move { self.send(request) })
    }
}

/// A connection for each batch: there is one every few seconds.
async fn exchange(address: &str, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Dropped with this call, however it ends, and the connection with it.
    let mut driving = JoinSet::new();
    driving.spawn(connection);
    let (mut head, body) = request.into_parts();
    head.headers.insert(HOST, HeaderValue::from_str(address)?);
    if let Some(target) = head.uri.path_and_query() {
        head.uri = Uri::from(target.clone());
    }
    let response = sender.send_request(Request::from_parts(head, Full::new(body))).await?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}
