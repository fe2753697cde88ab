//! A stream that returns bytes which were already read from it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose first reads return the bytes that another reader has left.
#[derive(Debug)]
pub(super) struct RewoundStream<S> {
    /// Empty when all of it is read.
    unread: Vec<u8>,
    /// Start of the unread bytes.
    start: usize,
    stream: S,
}

impl<S> RewoundStream<S> {
    pub(super) const fn new(unread: Vec<u8>, stream: S) -> Self {
        Self { unread, start: 0, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RewoundStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let rest = self.unread.get(self.start..).unwrap_or_default();
        let length = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..length).unwrap_or_default());
        self.start += length;
        if self.start >= self.unread.len() {
            (self.unread, self.start) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RewoundStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn unread_bytes_come_first() {
        let mut stream = RewoundStream::new(b"abc".to_vec(), &b"def"[..]);
        let mut two = [0; 2];
        stream.read_exact(&mut two).await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert_eq!((&two, &*rest), (b"ab", &b"cdef"[..]));
    }
}
