//! Agreeing on TLS, within bounds.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;

/// How long a client may take to agree, and to hear that it cannot.
const LONGEST: Duration = Duration::from_secs(10);

/// How much is still read of a client that could not be agreed with.
const MOST_UNHEARD: u64 = 64 * 1024;

/// Ends the handshakes that are under way when it is dropped.
pub(super) type Handshakes = watch::Sender<()>;

/// The stream that was agreed on. None if that took too long, failed, or is no longer wanted.
pub(super) async fn agree<S: AsyncRead + AsyncWrite + Unpin>(
    acceptor: TlsAcceptor,
    stream: S,
    mut wanted: watch::Receiver<()>,
) -> Option<TlsStream<S>> {
    let agreed = tokio::select! {
        agreed = timeout(LONGEST, shake_hands(acceptor, stream)) => agreed.ok()?,
        _ = wanted.changed() => return None,
    };
    // Any stranger can fail as often as they like, so this is not for the log of every day.
    agreed.inspect_err(|error| debug!(%error, "no TLS was agreed on")).ok()
}

async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
    acceptor: TlsAcceptor,
    stream: S,
) -> io::Result<TlsStream<S>> {
    match acceptor.accept(stream).into_fallible().await {
        Ok(stream) => Ok(stream),
        Err((error, stream)) => {
            part(stream).await;
            Err(error)
        }
    }
}

/// Closes a connection so that the other side still hears why: closed while something it has sent is
/// unread, it would be told of a reset instead.
async fn part<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    if stream.shutdown().await.is_ok() {
        let _ = tokio::io::copy(&mut stream.take(MOST_UNHEARD), &mut tokio::io::sink()).await;
    }
}
