//! Bodies of responses: the service's, or a refusal's.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a response that passed a [`RateLimitLayer`](crate::RateLimitLayer).
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        kind: Kind<B>,
        at_end: AtEnd,
    }
}

pin_project! {
    #[project = Projected]
    #[derive(Debug)]
    enum Kind<B> {
        Service { #[pin] body: B },
        Refusal { text: Bytes },
    }
}

impl<B> ResponseBody<B> {
    pub(super) fn of_service(body: B, at_end: AtEnd) -> Self {
        Self { kind: Kind::Service { body }, at_end }
    }

    pub(super) fn of_refusal(text: Bytes) -> Self {
        Self { kind: Kind::Refusal { text }, at_end: AtEnd::default() }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = match this.kind.project() {
            Projected::Service { body } => ready!(body.poll_frame(context)),
            Projected::Refusal { text } if text.is_empty() => None,
            Projected::Refusal { text } => Some(Ok(Frame::data(std::mem::take(text).into()))),
        };
        match &frame {
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, Buf::remaining);
                this.at_end.sent += u64::try_from(length).unwrap_or(u64::MAX);
            }
            Some(Err(_)) | None => this.at_end.come(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Service { body } => body.is_end_stream(),
            Kind::Refusal { text } => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Service { body } => body.size_hint(),
            Kind::Refusal { text } => {
                SizeHint::with_exact(u64::try_from(text.len()).unwrap_or(u64::MAX))
            }
        }
    }
}

/// What is done when a body ends or is dropped, once, with how many bytes were sent.
#[derive(Default)]
pub(super) struct AtEnd {
    sent: u64,
    act: Option<Box<dyn FnOnce(u64) + Send + Sync>>,
}

impl AtEnd {
    pub(super) fn new(act: impl FnOnce(u64) + Send + Sync + 'static) -> Self {
        Self { sent: 0, act: Some(Box::new(act)) }
    }

    fn come(&mut self) {
        if let Some(act) = self.act.take() {
            act(self.sent);
        }
    }
}

impl std::fmt::Debug for AtEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtEnd").field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.come();
    }
}
