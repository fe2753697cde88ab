//! The reader of one response.

use std::num::NonZero;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use super::event_stream::EventStream;
use super::figures::Figures;
use super::json::JsonScanner;
use super::tokens::Usage;

/// Bytes of text per token, for estimates. English text has about 4.
const BYTES_PER_TOKEN: NonZero<u64> = NonZero::new(4).unwrap();

/// Incremental reader of the token usage of one response. See the [module](super) for an example.
#[derive(Debug)]
pub struct UsageReader {
    format: Format,
    figures: Figures,
    bytes_per_token: NonZero<u64>,
}

#[derive(Debug)]
enum Format {
    Json(JsonScanner),
    EventStream(EventStream),
}

impl UsageReader {
    /// Creates a reader of a JSON response. An array is a stream of events, as Gemini sends it without `alt=sse`.
    #[must_use]
    pub fn json() -> Self {
        Self::with_format(Format::Json(JsonScanner::new()))
    }

    /// Creates a reader of server-sent events.
    #[must_use]
    pub fn event_stream() -> Self {
        Self::with_format(Format::EventStream(EventStream::new()))
    }

    fn with_format(format: Format) -> Self {
        let figures = Figures::default();
        Self { format, figures, bytes_per_token: BYTES_PER_TOKEN }
    }

    /// Creates the reader for a response with these headers, by its content type: `text/event-stream`, or
    /// `application/json` and types that end with `+json`. `None` for other types, and if the body is compressed.
    ///
    /// ```
    /// use http::HeaderMap;
    /// use tollgate_tower::usage::UsageReader;
    ///
    /// let mut headers = HeaderMap::new();
    /// headers.insert("content-type", "text/event-stream; charset=utf-8".parse()?);
    /// assert!(UsageReader::for_headers(&headers).is_some());
    ///
    /// headers.insert("content-encoding", "gzip".parse()?);
    /// assert!(UsageReader::for_headers(&headers).is_none());
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[must_use]
    pub fn for_headers(headers: &HeaderMap) -> Option<Self> {
        let is_compressed =
            |encoding: &http::HeaderValue| !encoding.as_bytes().eq_ignore_ascii_case(b"identity");
        if headers.get_all(CONTENT_ENCODING).iter().any(is_compressed) {
            return None;
        }
        let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let media_type = content_type.split(';').next()?.trim().to_ascii_lowercase();
        match media_type.as_str() {
            "text/event-stream" => Some(Self::event_stream()),
            "application/json" => Some(Self::json()),
            media_type if media_type.ends_with("+json") => Some(Self::json()),
            _ => None,
        }
    }

    /// Sets how many bytes of streamed text are estimated as one token. The default is 4.
    ///
    /// ```
    /// use std::num::NonZero;
    /// use tollgate_tower::usage::{Usage, UsageReader};
    ///
    /// let mut reader = UsageReader::event_stream().bytes_per_token(NonZero::new(3).ok_or("0")?);
    /// reader.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"123456\"}}]}\n\n");
    /// assert_eq!(reader.finish(), Usage::Estimated { input: None, output: 2 });
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub const fn bytes_per_token(mut self, bytes: NonZero<u64>) -> Self {
        self.bytes_per_token = bytes;
        self
    }

    /// Reads the next bytes of the body. They may end anywhere.
    pub fn push(&mut self, chunk: &[u8]) {
        match &mut self.format {
            Format::Json(document) => document.push(chunk, &mut self.figures),
            Format::EventStream(stream) => stream.push(chunk, &mut self.figures),
        }
    }

    /// Returns the usage, after the end of the body or after as much of it as was sent.
    #[must_use]
    pub fn finish(mut self) -> Usage {
        match &mut self.format {
            Format::Json(document) => document.end(&mut self.figures),
            Format::EventStream(stream) => stream.end(&mut self.figures),
        }
        self.figures.usage(self.bytes_per_token)
    }
}
