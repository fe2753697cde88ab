//! Bodies of a call: a request that must arrive in time, and a response that keeps its connection from being idle.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::Status;

use crate::listener::{RequestInProgress, ReservedMemory, reserve_memory};

/// Maximum time for all messages of a request to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a body that need no reservation of memory. All streams together may have about as many as a connection buffers
/// anyway.
const UNRESERVED: usize = 1024;
/// Bytes to reserve for a longer body: a message of the maximum size.
const RESERVED: usize = 64 * 1024;

/// The body of a request. Long incomplete bodies share the memory of those over HTTP; further ones wait.
pub(super) struct RequestBody {
    body: Incoming,
    received: usize,
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
    pub(super) const fn new(body: Incoming) -> Self {
        Self { body, received: 0, memory: Memory::Unreserved, timer: None }
    }

    /// Waits for memory, if the body needs any.
    fn poll_memory(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.received > UNRESERVED && matches!(self.memory, Memory::Unreserved) {
            self.memory = Memory::Waiting(Box::pin(reserve_memory(RESERVED)));
        }
        if let Memory::Waiting(reservation) = &mut self.memory {
            let permit = ready!(reservation.as_mut().poll(context));
            self.memory = Memory::Reserved { _permit: permit };
        }
        Poll::Ready(())
    }

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        ready!(self.poll_memory(context));
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let length = |frame: &Frame<Bytes>| frame.data_ref().map_or(0, Bytes::len);
        if let Some(Ok(frame)) = &frame {
            self.received = self.received.saturating_add(length(frame));
        }
        // Not `cancelled`, which tonic treats as the regular end of a request.
        let aborted = |_| Status::aborted("the request ended early");
        Poll::Ready(frame.map(|frame| frame.map_err(aborted)))
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("received", &self.received).finish_non_exhaustive()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Poll::Ready(frame) = self.poll_data(context) {
            return Poll::Ready(frame);
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(BODY_TIMEOUT)));
        timer.as_mut().poll(context).map(|()| {
            let seconds = BODY_TIMEOUT.as_secs();
            let text = format!("the request did not arrive within {seconds} s");
            Some(Err(Status::deadline_exceeded(text)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response.
#[derive(Debug)]
pub(super) struct ResponseBody {
    body: tonic::body::Body,
    _request: RequestInProgress,
}

impl ResponseBody {
    pub(super) const fn new(body: tonic::body::Body, request: RequestInProgress) -> Self {
        Self { body, _request: request }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
