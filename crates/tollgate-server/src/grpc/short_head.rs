//! The head of a waiting call, reduced to the headers that are read after its message has arrived, so that many waiting calls
//! use little memory.

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use hyper::{Request, Uri};

use super::descriptors::{COSTS, MAX_COSTS};

/// Maximum length of the values that are kept of one header, in bytes. Longer costs were refused before.
const MAX_VALUES: usize = MAX_COSTS;
/// Maximum length of the values that are kept in all, in bytes.
const MAX_HEAD: usize = MAX_COSTS + 1024;

/// The headers that are read after the message has arrived.
const KEPT: [HeaderName; 7] = [
    // First, because costs are never dropped.
    HeaderName::from_static(COSTS),
    CONTENT_TYPE,
    TE,
    HeaderName::from_static("grpc-encoding"),
    HeaderName::from_static("grpc-accept-encoding"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// Returns the request with the needed headers only. They are copied, because each one refers to the buffer of the whole head.
/// A header with more than [`MAX_VALUES`] bytes, and one that no longer fits into [`MAX_HEAD`], is dropped.
pub(super) fn with_short_head<B>(request: Request<B>) -> Request<B> {
    let (mut head, body) = request.into_parts();
    let (mut headers, mut free) = (HeaderMap::new(), MAX_HEAD);
    for name in KEPT {
        let values = head.headers.get_all(&name);
        let length: usize = values.iter().map(HeaderValue::len).sum();
        if length > MAX_VALUES.min(free) {
            continue;
        }
        free -= length;
        for value in values.iter().map(HeaderValue::as_bytes) {
            // Valid, because it is a copy.
            headers.extend(HeaderValue::from_bytes(value).map(|value| (name.clone(), value)));
        }
    }
    head.headers = headers;
    head.uri = head.uri.path().parse().unwrap_or_else(|_| Uri::default());
    Request::from_parts(head, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_needed_headers_are_kept() {
        let request = Request::post("http://host/a.B/C?q=1")
            .header("content-type", "application/grpc")
            .header("x-long", "y".repeat(10_000))
            .header("tracestate", "y".repeat(10_000))
            .header("x-tollgate-costs", "tokens=1")
            .header("x-tollgate-costs", "requests=2")
            .body(7)
            .unwrap();
        let short = with_short_head(request);
        assert_eq!((short.uri().path(), short.body()), ("/a.B/C", &7));
        assert_eq!(short.headers().len(), 3);
        assert_eq!(short.headers().get_all("x-tollgate-costs").iter().count(), 2);
    }

    #[test]
    fn kept_headers_have_a_maximum_length() {
        let mut request = Request::post("/a.B/C")
            .header(COSTS, format!("tokens={}7", "0".repeat(MAX_COSTS - "tokens=7".len())))
            .header("content-type", "application/grpc");
        for _ in 0..7 {
            request = request.header("tracestate", "y".repeat(2000)).header("te", "y".repeat(500));
        }
        let short = with_short_head(request.body(()).unwrap());
        let names: Vec<_> = short.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, [COSTS, "content-type"]);
    }
}
