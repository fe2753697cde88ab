//! Response bodies: the service's, or that of a refusal.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The response body of a service behind a [`RateLimitLayer`](crate::RateLimitLayer).
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        kind: Kind<B>,
        body_end: BodyEnd,
    }
}

pin_project! {
    #[project = KindProjection]
    #[derive(Debug)]
    enum Kind<B> {
        Service { #[pin] body: B },
        Refusal { text: Bytes },
    }
}

impl<B> ResponseBody<B> {
    pub(super) fn from_service(body: B) -> Self {
        Self::with_end(body, BodyEnd::default())
    }

    pub(super) const fn with_end(body: B, body_end: BodyEnd) -> Self {
        Self { kind: Kind::Service { body }, body_end }
    }

    pub(super) fn from_refusal(text: Bytes) -> Self {
        Self { kind: Kind::Refusal { text }, body_end: BodyEnd::default() }
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
            KindProjection::Service { body } => ready!(body.poll_frame(context)),
            KindProjection::Refusal { text } if text.is_empty() => None,
            KindProjection::Refusal { text } => Some(Ok(Frame::data(std::mem::take(text).into()))),
        };
        match &frame {
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, Buf::remaining);
                this.body_end.sent_bytes += u64::try_from(length).unwrap_or(u64::MAX);
                if let (Some(data), Some(action)) = (frame.data_ref(), &mut this.body_end.action) {
                    action.on_data(data);
                }
            }
            Some(Err(_)) | None => this.body_end.run(),
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

/// What the layer does with a response body while it is sent, and when it ends.
pub(super) trait BodyAction: Send + Sync {
    /// Reads the data of a frame before it is sent.
    fn on_data(&mut self, data: &dyn Buf);

    /// Runs once, when the body ends or is dropped, with the number of bytes sent.
    fn on_end(self: Box<Self>, sent_bytes: u64);
}

/// An action for the end of the body only.
struct AtEnd<F>(F);

impl<F: FnOnce(u64) + Send + Sync> BodyAction for AtEnd<F> {
    fn on_data(&mut self, _: &dyn Buf) {}

    fn on_end(self: Box<Self>, sent_bytes: u64) {
        (self.0)(sent_bytes);
    }
}

/// Runs the end of an action once, when a body ends or is dropped, with the number of bytes sent.
#[derive(Default)]
pub(super) struct BodyEnd {
    sent_bytes: u64,
    action: Option<Box<dyn BodyAction>>,
}

impl BodyEnd {
    pub(super) fn new(action: impl FnOnce(u64) + Send + Sync + 'static) -> Self {
        Self::with_action(AtEnd(action))
    }

    pub(super) fn with_action(action: impl BodyAction + 'static) -> Self {
        Self { sent_bytes: 0, action: Some(Box::new(action)) }
    }

    fn run(&mut self) {
        if let Some(action) = self.action.take() {
            action.on_end(self.sent_bytes);
        }
    }
}

impl std::fmt::Debug for BodyEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyEnd").field("sent_bytes", &self.sent_bytes).finish_non_exhaustive()
    }
}

impl Drop for BodyEnd {
    fn drop(&mut self) {
        self.run();
    }
}
