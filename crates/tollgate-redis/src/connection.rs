//! One connection to a Redis server: opened, logged in, known to be fit.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::resp::{Command, Decoder, Reply};
use crate::target::{Endpoint, Target};
use crate::tls::TlsStream;

mod dial;
mod handshake;
mod server_info;
#[cfg(test)]
mod tests;

pub use server_info::ServerInfo;
pub(crate) use server_info::info_field;

/// A stream to a server, whatever it runs over.
///
/// A write that fails must have taken none of the bytes it was given: what has been taken may have been
/// run, and is never sent again. What has been taken leaves when it is flushed, at the latest.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl Transport for TcpStream {}

#[cfg(unix)]
impl Transport for tokio::net::UnixStream {}

impl Transport for TlsStream {}

/// A connection on which nothing is under way.
pub(crate) struct Connection {
    pub(crate) stream: Box<dyn Transport>,
    pub(crate) decoder: Decoder,
    /// None if the server does not let us ask.
    pub(crate) info: Option<ServerInfo>,
}

/// Until when something may take.
#[derive(Debug, Clone, Copy)]
struct Limit {
    patience: Duration,
    deadline: Instant,
}

impl Limit {
    fn begin(patience: Duration) -> Self {
        Self { patience, deadline: Instant::now() + patience }
    }

    /// Does it in time, or tells that it was not.
    async fn keep<T>(
        self,
        otherwise: &str,
        work: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        match timeout_at(self.deadline, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("{otherwise} within {:?}", self.patience)),
        }
    }
}

impl Connection {
    /// Connects and logs in, within this time in all.
    pub(crate) async fn open(target: &Target, patience: Duration) -> Result<Self, Failure> {
        let limit = Limit::begin(patience);
        if let Endpoint::Tls(_, tls) = &target.endpoint {
            let prepared = async { tls.prepare().await.map(drop) };
            let prepared = limit.keep("the files for TLS cannot be read", prepared).await;
            prepared.map_err(Failure::Unreachable)?;
        }
        let unreachable =
            |why: String| Failure::Unreachable(format!("Redis at {} {why}", target.endpoint));
        let stream = dial::dial(&target.endpoint, limit).await.map_err(unreachable)?;
        let mut connection = Self { stream, decoder: Decoder::default(), info: None };
        let greeted = handshake::greet(&mut connection, target);
        let info = limit.keep("does not answer", greeted).await.map_err(unreachable)?;
        Ok(Self { info, ..connection })
    }

    /// Writes commands one after the other, without waiting for what they are answered.
    pub(crate) async fn write(
        &mut self,
        commands: impl IntoIterator<Item = Command>,
    ) -> io::Result<()> {
        let bytes: Vec<u8> = commands.into_iter().flat_map(Command::into_bytes).collect();
        self.stream.write_all(&bytes).await?;
        self.stream.flush().await
    }

    /// The next reply. May be dropped and asked again.
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

/// Why no reply can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the server closed it")]
    Closed,
    #[error(transparent)]
    Failed(#[from] io::Error),
    #[error("the server sent {0}")]
    Malformed(#[from] crate::resp::Malformed),
}
