//! A request without its body.

use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Request, Uri};

/// What is known of a request before its body is read, borrowed from wherever it is.
///
/// ```
/// use tollgate_tower::Head;
///
/// let request = http::Request::get("/search?q=1").body("any body")?;
/// assert_eq!(Head::from(&request).uri.path(), "/search");
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Head<'r> {
    /// The method.
    pub method: &'r Method,
    /// The address.
    pub uri: &'r Uri,
    /// The headers.
    pub headers: &'r HeaderMap,
    /// What other layers and the server have left.
    pub extensions: &'r Extensions,
}

/// Without the address and the headers, which may hold secrets.
impl std::fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Head").field("method", &self.method).finish_non_exhaustive()
    }
}

impl<'r, B> From<&'r Request<B>> for Head<'r> {
    fn from(request: &'r Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}

impl<'r> From<&'r Parts> for Head<'r> {
    fn from(parts: &'r Parts) -> Self {
        Self {
            method: &parts.method,
            uri: &parts.uri,
            headers: &parts.headers,
            extensions: &parts.extensions,
        }
    }
}
