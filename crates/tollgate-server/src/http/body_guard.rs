//! A response body that keeps its connection from being idle until it is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::HttpBody;
use hyper::body::{Frame, SizeHint};

use crate::listener::Progress;

/// Records the end of the response when the body is dropped, sent or not.
#[derive(Debug)]
pub(super) struct GuardedBody<B> {
    body: B,
    progress: Arc<Progress>,
}

impl<B> GuardedBody<B> {
    pub(super) const fn new(body: B, progress: Arc<Progress>) -> Self {
        Self { body, progress }
    }
}

impl<B> Drop for GuardedBody<B> {
    fn drop(&mut self) {
        self.progress.end();
    }
}

impl<B: HttpBody + Unpin> HttpBody for GuardedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
