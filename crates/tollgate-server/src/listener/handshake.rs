//! TLS handshakes with a time limit.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;

/// Maximum time of a handshake, including the alert after a failed one.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes to discard from a client whose handshake failed.
const MAX_DISCARDED: u64 = 64 * 1024;

/// Performs a TLS handshake. Returns `None` if it timed out, failed or was cancelled. A client that begins with a letter,
/// as every HTTP method does, receives `plain_response`: no TLS record begins with one.
pub(super) async fn accept_tls(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    plain_response: Option<&'static [u8]>,
    mut cancelled: watch::Receiver<()>,
) -> Option<TlsStream<TcpStream>> {
    let accepting = async {
        match plain_response {
            Some(response) if is_plain(&stream).await? => refuse_plain(stream, response).await,
            _ => handshake(acceptor, stream).await,
        }
    };
    let result = tokio::select! {
        result = timeout(HANDSHAKE_TIMEOUT, accepting) => result.ok()?,
        _ = cancelled.changed() => return None,
    };
    // Any client can cause this at any rate, so it is logged at debug level only.
    result.inspect_err(|error| debug!(%error, "TLS handshake failed")).ok()
}

/// Returns whether the first byte of the connection is a letter. The byte stays unread.
async fn is_plain(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let length = stream.peek(&mut first).await?;
    Ok(length == 1 && first.iter().all(u8::is_ascii_alphabetic))
}

async fn refuse_plain<T>(mut stream: TcpStream, response: &[u8]) -> io::Result<T> {
    stream.write_all(response).await?;
    close(stream).await;
    Err(io::Error::new(io::ErrorKind::InvalidData, "plain request on a TLS port"))
}

async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    acceptor: TlsAcceptor,
    stream: S,
) -> io::Result<TlsStream<S>> {
    match acceptor.accept(stream).into_fallible().await {
        Ok(stream) => Ok(stream),
        Err((error, stream)) => {
            close(stream).await;
            Err(error)
        }
    }
}

/// Closes a connection so that the client can still read the TLS alert. Closing with unread input would send a reset
/// instead.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    if stream.shutdown().await.is_ok() {
        let _ = tokio::io::copy(&mut stream.take(MAX_DISCARDED), &mut tokio::io::sink()).await;
    }
}
