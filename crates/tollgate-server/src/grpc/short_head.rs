//! The head of a call that waits for its message: only what the call still needs, so that many calls that wait use little
//! memory.

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use hyper::{Request, Uri};

use super::descriptors::{COSTS, MAX_COSTS};

/// Maximum length of a header that is kept, in bytes. Longer costs were refused before.
const MAX_VALUE: usize = MAX_COSTS;

/// The headers that are read after the message has arrived.
const KEPT: [HeaderName; 7] = [
    CONTENT_TYPE,
    TE,
    HeaderName::from_static("grpc-encoding"),
    HeaderName::from_static("grpc-accept-encoding"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static(COSTS),
];

/// Returns the request without the headers that are not needed any more. What remains is copied, because it is a part of the
/// buffer of the whole head.
pub(super) fn with_short_head<B>(request: Request<B>) -> Request<B> {
    let (mut head, body) = request.into_parts();
    let mut headers = HeaderMap::new();
    for name in KEPT {
        let values = head.headers.get_all(&name).iter().map(HeaderValue::as_bytes);
        for value in values.filter(|value| value.len() <= MAX_VALUE) {
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
}
