//! Facts from headers.

use std::borrow::Cow;

use http::HeaderName;
use http::header::AUTHORIZATION;

use super::{FactSource, RequestHead};
use crate::header_value::single_value;

/// Reads a fact from a header, for example the client or the user.
///
/// Clients can send any header: use only headers that a gateway sets or that other code verifies. A header that occurs
/// twice counts as missing.
///
/// ```
/// use tollgate_tower::{RequestHead, Header, FactSource};
///
/// let client = Header::from_static("x-client-id");
/// let request = http::Request::builder().header("X-Client-Id", "c1").header("X-Client-Id", "c2");
/// assert_eq!(client.value(&RequestHead::from(&request.body(())?)), None);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Header(HeaderName);

impl Header {
    /// Reads the header with this name.
    #[must_use]
    pub const fn new(name: HeaderName) -> Self {
        Self(name)
    }

    /// Reads the header with this name, which must be lower case.
    ///
    /// # Panics
    /// Panics if the name is not a valid lower-case header name. In a `const` this is a compile error.
    #[must_use]
    pub const fn from_static(name: &'static str) -> Self {
        Self(HeaderName::from_static(name))
    }
}

impl FactSource for Header {
    fn value<'r>(&'r self, request: &RequestHead<'r>) -> Option<Cow<'r, [u8]>> {
        single_value(request.headers, &self.0).map(Cow::Borrowed)
    }
}

/// Reads an API key. The fact `api_key` is replaced by its digest before counting, and the policy's `tiers` map it to a
/// tier.
///
/// ```
/// use tollgate_tower::{ApiKey, RequestHead, FactSource};
///
/// let request = http::Request::builder().header("authorization", "Bearer s3cret").body(())?;
/// let key = ApiKey::bearer();
/// assert_eq!(key.value(&RequestHead::from(&request)).as_deref(), Some(&b"s3cret"[..]));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ApiKey(KeyLocation);

#[derive(Debug, Clone)]
enum KeyLocation {
    Header(HeaderName),
    Bearer,
}

impl ApiKey {
    /// Reads the key from this header, such as `x-api-key`.
    #[must_use]
    pub const fn header(name: HeaderName) -> Self {
        Self(KeyLocation::Header(name))
    }

    /// Reads the key from `Authorization: Bearer …`.
    #[must_use]
    pub const fn bearer() -> Self {
        Self(KeyLocation::Bearer)
    }
}

impl FactSource for ApiKey {
    fn value<'r>(&'r self, request: &RequestHead<'r>) -> Option<Cow<'r, [u8]>> {
        let key = match &self.0 {
            KeyLocation::Header(name) => single_value(request.headers, name),
            KeyLocation::Bearer => {
                single_value(request.headers, AUTHORIZATION).and_then(bearer_token)
            }
        };
        key.map(Cow::Borrowed)
    }
}

/// Returns the token of a bearer scheme, which is case-insensitive.
pub(crate) fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
}
