//! Recognizes a TLS server behind a plain connection by the first byte of its response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The type of a TLS record that contains an alert. No HTTP response begins with this byte.
const TLS_ALERT: u8 = 21;

/// A plain connection that records the first byte of the response.
#[derive(Debug)]
pub(super) struct FirstByteStream {
    socket: TcpStream,
    first: FirstByte,
}

/// The first byte of a response; 0 before it arrives.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstByte(Arc<AtomicU8>);

impl FirstByte {
    /// Returns whether the server sent a TLS alert.
    pub(super) fn is_tls_alert(&self) -> bool {
        self.0.load(Ordering::Relaxed) == TLS_ALERT
    }
}

impl FirstByteStream {
    pub(super) fn new(socket: TcpStream) -> (Self, FirstByte) {
        let first = FirstByte::default();
        (Self { socket, first: first.clone() }, first)
    }
}

impl AsyncRead for FirstByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, buffer);
        if let Some(byte) = buffer.filled().get(before) {
            let _ = self.first.0.compare_exchange(0, *byte, Ordering::Relaxed, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for FirstByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
