//! HTTP client for the collector, on a separate runtime driven by the exporter's thread. It shares no threads with
//! the requests of the service, and stops with the exporter's thread.

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

/// Maximum response body in bytes. It contains the number of rejected spans and the reason.
const MAX_RESPONSE: usize = 64 * 1024;

/// Minimum time between two log lines about failed exports.
const LOG_INTERVAL: Duration = Duration::from_mins(5);

/// One collector.
pub(super) struct Collector {
    address: String,
    timeout: Duration,
    runtime: Runtime,
    log: Mutex<LogState>,
}

/// What was logged about the collector.
#[derive(Debug, Default)]
struct LogState {
    failure_logged: Option<Instant>,
    is_failing: bool,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Collector {
    /// Creates a client for the collector at `host:port` with a timeout per request.
    pub(super) fn new(address: String, timeout: Duration) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { address, timeout, runtime, log: Mutex::default() })
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let result = self.runtime.block_on(async {
            match timeout(self.timeout, post(&self.address, request)).await {
                Ok(result) => result,
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        });
        match &result {
            Ok(response) if response.status().is_success() => self.note_success(),
            Ok(response) => self.note_failure(&format!("status {}", response.status().as_u16())),
            Err(error) => self.note_failure(&error.to_string()),
        }
        result
    }

    fn note_failure(&self, error: &str) {
        let mut log = self.log.lock();
        if log.failure_logged.is_none_or(|at| at.elapsed() > LOG_INTERVAL) {
            *log = LogState { failure_logged: Some(Instant::now()), is_failing: true };
            warn!(collector = self.address, error, "trace export failed; spans are dropped");
        }
    }

    fn note_success(&self) {
        let mut log = self.log.lock();
        if log.is_failing {
            log.is_failing = false;
            info!(collector = self.address, "trace export works again");
        }
    }
}

type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> ResponseFuture<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move { self.send(request) })
    }
}

/// Sends a batch on a new connection; batches are seconds apart.
async fn post(address: &str, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Dropping the set when this call returns closes the connection.
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let (mut head, body) = request.into_parts();
    head.headers.insert(HOST, HeaderValue::from_str(address)?);
    if let Some(target) = head.uri.path_and_query() {
        head.uri = Uri::from(target.clone());
    }
    let response = sender.send_request(Request::from_parts(head, Full::new(body))).await?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_RESPONSE).collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}
