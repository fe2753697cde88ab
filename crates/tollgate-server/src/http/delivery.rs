//! Delivery of responses that contain permits: the slots are released if the connection fails before.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Response;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::reply::Reply;
use crate::api::UndeliveredPermit;

/// The permits of a response, in its extensions. When the last clone is dropped, those that are not delivered are
/// released.
#[derive(Debug, Clone)]
struct ResponsePermits(Arc<[UndeliveredPermit]>);

/// Attaches permits to the response that delivers them.
pub(super) fn undelivered(
    mut reply: Reply,
    permits: impl IntoIterator<Item = UndeliveredPermit>,
) -> Reply {
    let permits: Arc<[UndeliveredPermit]> = permits.into_iter().collect();
    if !permits.is_empty() {
        reply.extensions_mut().insert(ResponsePermits(permits));
    }
    reply
}

/// The permits of the response that a connection is sending. They are released when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Delivery(Mutex<Option<ResponsePermits>>);

impl Delivery {
    /// Keeps the permits of a response until it is sent.
    pub(super) fn begin<B>(&self, response: &mut Response<B>) {
        if let Some(permits) = response.extensions_mut().remove::<ResponsePermits>() {
            *self.0.lock() = Some(permits);
        }
    }

    /// Records that all responses so far are sent.
    fn end(&self) {
        if let Some(ResponsePermits(permits)) = self.0.lock().take() {
            permits.iter().for_each(UndeliveredPermit::set_delivered);
        }
    }
}

/// A stream that records when responses are sent. Hyper flushes it when it has written all that it has buffered.
#[derive(Debug)]
pub(super) struct DeliveringStream<S> {
    stream: S,
    delivery: Arc<Delivery>,
}

impl<S> DeliveringStream<S> {
    pub(super) const fn new(stream: S, delivery: Arc<Delivery>) -> Self {
        Self { stream, delivery }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for DeliveringStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for DeliveringStream<S> {
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
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.delivery.end();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
