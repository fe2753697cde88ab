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
use crate::listener::{IncompleteRequest, TooSlow};

/// Maximum time for all messages of a request to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a body that are not charged. All streams together may have about as many as a connection buffers anyway.
const UNCHARGED: usize = 1024;
/// The charge for a longer body: a message of the maximum size.
const CHARGE: usize = 64 * 1024;

/// Maximum length of a body: one message of the maximum size with its prefix. tonic reads the messages of a unary call up to the
/// last one, so a body without end would take the processor for the whole time-out.
const MAX_BODY: usize = CHARGE + 5;

/// The body of a request. Long incomplete bodies share the memory of those over HTTP.
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
    Uncharged,
    Waiting(Pin<Box<dyn Future<Output = Result<IncompleteRequest, TooSlow>> + Send>>),
    Charged(IncompleteRequest),
}

/// Why a body is not returned completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    EndedEarly,
    TooSlow,
    TooLong,
}

impl Failure {
    fn status(self) -> Status {
        match self {
            // Not `cancelled`, which tonic treats as the regular end of a request.
            Self::EndedEarly => Status::aborted("the request ended early"),
            Self::TooSlow => Status::deadline_exceeded(
                "the request arrived more slowly than others that need the memory",
            ),
            Self::TooLong => Status::resource_exhausted(format!(
                "the request is longer than one message of the maximum size of {CHARGE} bytes"
            )),
        }
    }
}

impl RequestBody {
    pub(super) const fn new(body: RecvStream) -> Self {
        Self {
            body,
            received: None,
            length: 0,
            is_data_complete: false,
            memory: Memory::Uncharged,
            timer: None,
        }
    }

    /// Returns the message of a short body that has arrived completely, and leaves the body unchanged. Returns `None` for
    /// any other body.
    pub(super) fn short_message(&mut self, context: &mut Context<'_>) -> Option<Bytes> {
        let Poll::Ready(Some(Ok(data))) = self.poll_received(context) else { return None };
        let data = self.received.insert(data);
        if self.length > UNCHARGED || !self.body.is_end_stream() {
            return None;
        }
        message::only_message(data)
    }

    /// Waits for memory, if the body needs any. An error if others need its memory.
    fn poll_memory(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TooSlow>> {
        if self.length > UNCHARGED && matches!(self.memory, Memory::Uncharged) {
            self.memory = Memory::Waiting(Box::pin(async {
                let mut request = IncompleteRequest::new();
                request.charge(CHARGE).await?;
                Ok(request)
            }));
        }
        if let Memory::Waiting(charging) = &mut self.memory {
            self.memory = Memory::Charged(ready!(charging.as_mut().poll(context))?);
        }
        if let Memory::Charged(request) = &mut self.memory
            && let Poll::Ready(too_slow) = request.poll_dropped(context)
        {
            return Poll::Ready(Err(too_slow));
        }
        Poll::Ready(Ok(()))
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
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        ready!(self.poll_memory(context)).map_err(|TooSlow| Failure::TooSlow)?;
        let ended_early = |_| Failure::EndedEarly;
        if !self.is_data_complete {
            if let Some(data) = ready!(self.poll_received(context)) {
                if self.length > MAX_BODY {
                    return Poll::Ready(Some(Err(Failure::TooLong)));
                }
                return Poll::Ready(Some(data.map(Frame::data).map_err(ended_early)));
            }
            self.is_data_complete = true;
        }
        let trailers = ready!(self.body.poll_trailers(context)).transpose();
        Poll::Ready(trailers.map(|trailers| trailers.map(Frame::trailers).map_err(ended_early)))
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
            return Poll::Ready(part.map(|part| part.map_err(Failure::status)));
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
