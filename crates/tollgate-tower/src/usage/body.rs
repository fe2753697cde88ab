//! A response body whose usage is read.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::reader::UsageReader;
use super::tokens::Usage;

pin_project! {
    /// A response body that passes all frames through, unchanged and without delay, and reports the token usage.
    ///
    /// The function is called once: at the end of the body, at an error, or when the body is dropped because the client
    /// disconnected, with the usage read so far.
    ///
    /// ```
    /// use tollgate_tower::usage::{Usage, UsageBody};
    ///
    /// # async fn example(client: reqwest::Client) -> Result<(), reqwest::Error> {
    /// let upstream = client.get("http://localhost:8000/v1/models").send().await?;
    /// let response: http::Response<reqwest::Body> = upstream.into();
    /// let response = UsageBody::wrap(response, |usage: Usage| println!("{usage:?}"));
    /// # let _ = response;
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug)]
    pub struct UsageBody<B> {
        #[pin]
        body: B,
        report: Report,
    }
}

impl<B> UsageBody<B> {
    /// Wraps a body. Without a reader, the usage is [`Unknown`](Usage::Unknown).
    pub fn new(
        body: B,
        reader: Option<UsageReader>,
        on_end: impl FnOnce(Usage) + Send + Sync + 'static,
    ) -> Self {
        Self { body, report: Report { reader, on_end: Some(Box::new(on_end)) } }
    }

    /// Wraps the body of a response, with the reader [for its headers](UsageReader::for_headers).
    pub fn wrap(
        response: Response<B>,
        on_end: impl FnOnce(Usage) + Send + Sync + 'static,
    ) -> Response<Self> {
        let reader = UsageReader::for_headers(response.headers());
        response.map(|body| Self::new(body, reader, on_end))
    }
}

impl<B> Body for UsageBody<B>
where
    B: Body,
    B::Data: AsRef<[u8]>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.body.poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(reader)) = (frame.data_ref(), &mut this.report.reader) {
                    reader.push(data.as_ref());
                }
            }
            Some(Err(_)) | None => this.report.send(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Sends the usage once, at the latest when the body is dropped.
struct Report {
    reader: Option<UsageReader>,
    on_end: Option<Box<dyn FnOnce(Usage) + Send + Sync>>,
}

impl Report {
    fn send(&mut self) {
        let usage = self.reader.take().map_or(Usage::Unknown, UsageReader::finish);
        if let Some(on_end) = self.on_end.take() {
            on_end(usage);
        }
    }
}

impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Report").field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.send();
    }
}
