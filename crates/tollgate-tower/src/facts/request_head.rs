//! The request head: a request without its body.

use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Request, Uri};

/// A borrowed request head: method, URI, headers and extensions.
///
/// ```
/// use tollgate_tower::RequestHead;
///
/// let request = http::Request::get("/search?q=1").body("any body")?;
/// assert_eq!(RequestHead::from(&request).uri.path(), "/search");
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct RequestHead<'r> {
    /// The method.
    pub method: &'r Method,
    /// The URI.
    pub uri: &'r Uri,
    /// The headers.
    pub headers: &'r HeaderMap,
    /// The extensions that the server and other layers added.
    pub extensions: &'r Extensions,
}

/// Omits the URI and the headers, which may contain secrets.
impl std::fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestHead").field("method", &self.method).finish_non_exhaustive()
    }
}

impl<'r, B> From<&'r Request<B>> for RequestHead<'r> {
    fn from(request: &'r Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}

impl<'r> From<&'r Parts> for RequestHead<'r> {
    fn from(parts: &'r Parts) -> Self {
        Self {
            method: &parts.method,
            uri: &parts.uri,
            headers: &parts.headers,
            extensions: &parts.extensions,
        }
    }
}
