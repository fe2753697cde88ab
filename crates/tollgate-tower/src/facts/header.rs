//! Facts that headers hold.

use std::borrow::Cow;

use http::HeaderName;
use http::header::AUTHORIZATION;

use super::{Head, Source};
use crate::header_value::only;

/// A header that names the client, the user, or whatever else.
///
/// Anyone can write a header: believe those only that a gateway sets, or that are checked elsewhere. One that
/// comes twice is not known.
///
/// ```
/// use tollgate_tower::{Head, Header, Source};
///
/// let client = Header::from_static("x-client-id");
/// let request = http::Request::builder().header("X-Client-Id", "c1").header("X-Client-Id", "c2");
/// assert_eq!(client.value(&Head::from(&request.body(())?)), None);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Header(HeaderName);

impl Header {
    /// The header of this name.
    #[must_use]
    pub const fn new(name: HeaderName) -> Self {
        Self(name)
    }

    /// The header of this name, which is written in lower case.
    ///
    /// # Panics
    /// The name is not one of a header. In a `const` that fails to compile.
    #[must_use]
    pub const fn from_static(name: &'static str) -> Self {
        Self(HeaderName::from_static(name))
    }
}

impl Source for Header {
    fn value<'r>(&'r self, request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
        only(request.headers, &self.0).map(Cow::Borrowed)
    }
}

/// Where callers show their API keys. As the fact `api_key` it becomes a digest before anything is counted, and
/// the policy's `tiers` say what tier it stands for.
///
/// ```
/// use tollgate_tower::{ApiKey, Head, Source};
///
/// let request = http::Request::builder().header("authorization", "Bearer s3cret").body(())?;
/// let key = ApiKey::bearer();
/// assert_eq!(key.value(&Head::from(&request)).as_deref(), Some(&b"s3cret"[..]));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ApiKey(Place);

#[derive(Debug, Clone)]
enum Place {
    Header(HeaderName),
    Bearer,
}

impl ApiKey {
    /// In this header, such as `x-api-key`.
    #[must_use]
    pub const fn header(name: HeaderName) -> Self {
        Self(Place::Header(name))
    }

    /// In `Authorization: Bearer …`.
    #[must_use]
    pub const fn bearer() -> Self {
        Self(Place::Bearer)
    }
}

impl Source for ApiKey {
    fn value<'r>(&'r self, request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
        let key = match &self.0 {
            Place::Header(name) => only(request.headers, name),
            Place::Bearer => only(request.headers, AUTHORIZATION).and_then(after_bearer),
        };
        key.map(Cow::Borrowed)
    }
}

/// The scheme is written in any case.
fn after_bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
}
