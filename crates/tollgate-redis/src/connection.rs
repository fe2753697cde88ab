//! One connection to a Redis server: opened, logged in, known to be fit.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::address::Address;
use crate::failure::Failure;
use crate::resp::{Command, Decoder, Reply};

mod handshake;
mod server_info;
#[cfg(test)]
mod tests;

pub use server_info::ServerInfo;

/// A stream to a server, whatever it runs over.
///
/// A write that fails must have taken none of the bytes it was given: what has been taken may have been
/// run, and is never sent again.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl Transport for TcpStream {}

/// A connection on which nothing is under way.
pub(crate) struct Connection {
    pub(crate) stream: Box<dyn Transport>,
    pub(crate) decoder: Decoder,
    /// None if the server does not let us ask.
    pub(crate) info: Option<ServerInfo>,
}

impl Connection {
    /// Connects and logs in, within this time in all.
    pub(crate) async fn open(address: &Address, patience: Duration) -> Result<Self, Failure> {
        let deadline = Instant::now() + patience;
        let unreachable =
            |why: String| Failure::Unreachable(format!("Redis at {} {why}", address.place()));
        let stream = match timeout_at(deadline, connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(unreachable(format!("cannot be reached: {error}"))),
            Err(_) => return Err(unreachable(format!("cannot be reached within {patience:?}"))),
        };
        let mut connection = Self { stream, decoder: Decoder::default(), info: None };
        match timeout_at(deadline, handshake::greet(&mut connection, address)).await {
            Ok(Ok(info)) => Ok(Self { info, ..connection }),
            Ok(Err(why)) => Err(unreachable(why)),
            Err(_) => Err(unreachable(format!("does not answer within {patience:?}"))),
        }
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

async fn connect(address: &Address) -> io::Result<Box<dyn Transport>> {
    let stream = TcpStream::connect((address.host(), address.port())).await?;
    // Every command is waited for: none may lie about to be joined by another.
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}
