//! The body of a request: it must arrive in time, and long incomplete bodies share a memory limit.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use hyper::body::{Body, Frame};
use tokio::time::{Sleep, sleep};
use tonic::Status;

use super::message;
use crate::listener::{ReservedMemory, reserve_memory};

/// Maximum time for all messages of a request to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a body that need no reservation of memory. All streams together may have about as many as a connection buffers
/// anyway.
const UNRESERVED: usize = 1024;
/// Bytes to reserve for a longer body: a message of the maximum size.
const RESERVED: usize = 64 * 1024;

/// The body of a request. Long incomplete bodies share the memory of those over HTTP; further ones wait.
pub(super) struct RequestBody {
    body: RecvStream,
    /// Data that was received, but is not returned yet.
    received: Option<Bytes>,
    length: usize,
    is_data_complete: bool,
    memory: Memory,
    /// Set when the body has to wait. Most bodies arrive with their head.
    timer: Option<Pin<Box<Sleep>>>,
}

/// The memory of a body.
enum Memory {
    Unreserved,
    Waiting(Pin<Box<dyn Future<Output = Option<ReservedMemory>> + Send>>),
    Reserved { _permit: Option<ReservedMemory> },
}

impl RequestBody {
    pub(super) const fn new(body: RecvStream) -> Self {
        Self {
            body,
            received: None,
            length: 0,
            is_data_complete: false,
            memory: Memory::Unreserved,
            timer: None,
        }
    }

    /// Returns the message of a short body that has arrived completely, and leaves the body unchanged. Returns `None` for
    /// any other body.
    pub(super) fn short_message(&mut self, context: &mut Context<'_>) -> Option<Bytes> {
        let Poll::Ready(Some(Ok(data))) = self.poll_received(context) else { return None };
        let data = self.received.insert(data);
        if self.length > UNRESERVED || !self.body.is_end_stream() {
            return None;
        }
        message::only_message(data)
    }

    /// Waits for memory, if the body needs any.
    fn poll_memory(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.length > UNRESERVED && matches!(self.memory, Memory::Unreserved) {
            self.memory = Memory::Waiting(Box::pin(reserve_memory(RESERVED)));
        }
        if let Memory::Waiting(reservation) = &mut self.memory {
            let permit = ready!(reservation.as_mut().poll(context));
            self.memory = Memory::Reserved { _permit: permit };
        }
        Poll::Ready(())
    }

    /// Receives the next data, and lets the client send as much again.
    fn poll_received(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, h2::Error>>> {
        if let Some(data) = self.received.take() {
            return Poll::Ready(Some(Ok(data)));
        }
        let data = ready!(self.body.poll_data(context));
        if let Some(Ok(data)) = &data {
            self.length = self.length.saturating_add(data.len());
            // Fails only if more is released than was received.
            let _ = self.body.flow_control().release_capacity(data.len());
        }
        Poll::Ready(data)
    }

    fn poll_part(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        ready!(self.poll_memory(context));
        if !self.is_data_complete {
            if let Some(data) = ready!(self.poll_received(context)) {
                return Poll::Ready(Some(data.map(Frame::data)));
            }
            self.is_data_complete = true;
        }
        let trailers = ready!(self.body.poll_trailers(context)).transpose();
        Poll::Ready(trailers.map(|trailers| trailers.map(Frame::trailers)))
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Poll::Ready(part) = self.poll_part(context) {
            // Not `cancelled`, which tonic treats as the regular end of a request.
            let aborted = |_| Status::aborted("the request ended early");
            return Poll::Ready(part.map(|part| part.map_err(aborted)));
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(BODY_TIMEOUT)));
        timer.as_mut().poll(context).map(|()| {
            let seconds = BODY_TIMEOUT.as_secs();
            let text = format!("the request did not arrive within {seconds} s");
            Some(Err(Status::deadline_exceeded(text)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.received.is_none() && self.body.is_end_stream()
    }
}
