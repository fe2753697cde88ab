//! A TLS stream that reports exactly which bytes it has accepted.

use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client;

use super::error_text;

/// A TLS stream that reports exactly which bytes it has accepted.
///
/// The inner stream encrypts and writes in one step: a failed write returns an error, although some encrypted
/// bytes may have left. This stream separates the steps. Encrypted bytes count as accepted whether or not they
/// can be written; the next write or flush returns the error. No bytes are accepted while earlier ones wait.
pub(crate) struct TlsStream<S = TcpStream> {
    stream: client::TlsStream<S>,
    has_certificate: bool,
    /// The write error of accepted bytes.
    failed: Option<io::Error>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    pub(super) const fn new(stream: client::TlsStream<S>, has_certificate: bool) -> Self {
        Self { stream, has_certificate, failed: None }
    }

    fn poll_write_accepted(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.failed.take() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_flush(context),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let has_certificate = self.has_certificate;
        match ready!(Pin::new(&mut self.stream).poll_read(context, buffer)) {
            // Closed without close_notify. Replies contain their length, so a truncated one is detected.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            outcome => {
                Poll::Ready(outcome.map_err(|error| error_text::explain_io(error, has_certificate)))
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_accepted(context))?;
        let (_, session) = self.stream.get_mut();
        let accepted = session.writer().write_vectored(slices)?;
        if let Poll::Ready(Err(error)) = self.poll_write_accepted(context) {
            self.failed = Some(error);
        }
        Poll::Ready(Ok(accepted))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_accepted(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_accepted(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
