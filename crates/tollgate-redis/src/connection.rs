//! One connection to a Redis server: connected, logged in, with a supported version.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::resp::{Command, Decoder, Reply};

mod dial;
mod handshake;
#[cfg(tollgate_model)]
pub(crate) mod model;
mod route;
mod sentinels;
mod server_info;
mod target;
#[cfg(test)]
mod tests;
mod tls;

pub(crate) use route::Route;
pub(crate) use sentinels::Sentinels;
pub use server_info::ServerInfo;
pub(crate) use server_info::info_field;
pub(crate) use target::{Endpoint, Target};
pub(crate) use tls::{Tls, TlsStream};

/// A byte stream to a server.
///
/// A failed write must have accepted none of its bytes: accepted bytes may have run and are never sent again.
/// A flush sends all accepted bytes.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl Transport for TcpStream {}

#[cfg(unix)]
impl Transport for tokio::net::UnixStream {}

impl Transport for TlsStream {}

/// A connection without commands in flight.
pub(crate) struct Connection {
    pub(crate) stream: Box<dyn Transport>,
    pub(crate) decoder: Decoder,
    /// `None` if the server does not report its version.
    pub(crate) info: Option<ServerInfo>,
}

/// The deadline of a connection attempt.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    timeout: Duration,
    at: Instant,
}

impl Deadline {
    fn after(timeout: Duration) -> Self {
        Self { timeout, at: Instant::now() + timeout }
    }

    /// Runs `work` until the deadline. A timeout is the error "`problem` within 1s".
    async fn limit<T>(
        self,
        problem: &str,
        work: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        match timeout_at(self.at, work).await {
            Ok(outcome) => outcome,
            Err(_) => {
                Err(ConnectError::Unreachable(format!("{problem} within {:?}", self.timeout)))
            }
        }
    }
}

/// The reason of a failed connection attempt. The text begins with a verb; the subject is the server.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// The server cannot be reached, or cannot serve now.
    Unreachable(String),
    /// The server rejects this client, or cannot be used, until a setting changes.
    Misconfigured(String),
}

impl ConnectError {
    fn into_failure(self, describe: impl FnOnce(String) -> String) -> Failure {
        match self {
            Self::Unreachable(reason) => Failure::Unreachable(describe(reason)),
            Self::Misconfigured(reason) => Failure::Misconfigured(describe(reason)),
        }
    }
}

impl Connection {
    /// Connects and logs in, within `timeout` in total.
    pub(crate) async fn open(target: &Target, timeout: Duration) -> Result<Self, Failure> {
        let deadline = Deadline::after(timeout);
        if let Endpoint::Tls(_, tls) = &target.endpoint {
            let prepared =
                async { tls.prepare().await.map(drop).map_err(ConnectError::Misconfigured) };
            let prepared = deadline.limit("the TLS files cannot be read", prepared).await;
            prepared.map_err(|error| error.into_failure(|reason| reason))?;
        }
        let failure = |error: ConnectError| {
            error.into_failure(|reason| format!("Redis at {} {reason}", target.endpoint))
        };
        let stream = dial::dial(&target.endpoint, deadline).await.map_err(failure)?;
        let mut connection = Self { stream, decoder: Decoder::default(), info: None };
        let handshake = handshake::handshake(&mut connection, target);
        let info = deadline.limit("did not reply", handshake).await.map_err(failure)?;
        Ok(Self { info, ..connection })
    }

    /// Writes commands, without waiting for their replies.
    pub(crate) async fn write(
        &mut self,
        commands: impl IntoIterator<Item = Command>,
    ) -> io::Result<()> {
        let bytes: Vec<u8> = commands.into_iter().flat_map(Command::into_bytes).collect();
        self.stream.write_all(&bytes).await?;
        self.stream.flush().await
    }

    /// Reads the next reply. Cancel safe.
    pub(crate) async fn read(&mut self, cap: usize) -> Result<Reply, ReadError> {
        loop {
            if let Some(reply) = self.decoder.next(cap)? {
                return Ok(reply);
            }
            if self.stream.read_buf(self.decoder.buffer()).await? == 0 {
                return Err(ReadError::Closed);
            }
        }
    }
}

/// The reason why no reply can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the server closed it")]
    Closed,
    #[error(transparent)]
    Failed(#[from] io::Error),
    #[error("the server sent {0}")]
    Malformed(#[from] crate::resp::Malformed),
}
