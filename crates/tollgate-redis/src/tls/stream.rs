//! A stream over TLS that knows what has been taken.

use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client;

use super::error_text;

/// A stream over TLS.
///
/// The stream beneath encrypts what it is given and writes it in one step: if writing fails it tells an
/// error, though what it has encrypted may have left. Here these are two steps. What is encrypted is
/// taken, and told so, whatever becomes of it; that it could not be written is told by the next write or
/// flush. And nothing is taken while something taken earlier is still to be written.
pub(crate) struct TlsStream<S = TcpStream> {
    stream: client::TlsStream<S>,
    has_certificate: bool,
    /// Why what was taken could not be written.
    failed: Option<io::Error>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    pub(super) const fn new(stream: client::TlsStream<S>, has_certificate: bool) -> Self {
        Self { stream, has_certificate, failed: None }
    }

    fn poll_pass_on(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
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
            // It went without a goodbye. Replies tell their own length: one that is cut off is not taken
            // for a whole one.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            outcome => {
                Poll::Ready(outcome.map_err(|error| error_text::told(error, has_certificate)))
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
        ready!(self.poll_pass_on(context))?;
        let (_, session) = self.stream.get_mut();
        let taken = session.writer().write_vectored(slices)?;
        if let Poll::Ready(Err(error)) = self.poll_pass_on(context) {
            self.failed = Some(error);
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_pass_on(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pass_on(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
