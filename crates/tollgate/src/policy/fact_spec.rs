//! Sources of facts, as the section `facts` of a policy defines them.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::net;
use crate::request::{FactValue, MAX_FACT_LENGTH};

use super::digest;
use super::fact_name::{FactName, Meaning};

/// A fact that the section `facts` of a policy defines: its name and its sources, in order.
///
/// Programs that have the headers and the address of a request compute the fact with [`value`](Self::value): forward
/// auth, the middleware, and the replay of access logs.
///
/// ```
/// use tollgate::Policy;
///
/// let text = "
/// version: 1
/// facts:
///   client: [{ header: x-client-id }, { header: authorization, digest: true }, ip]
/// ";
/// let policy = Policy::from_yaml("policy.yaml", text, Policy::builtin_limit())?;
/// let client = policy.fact_spec("client").ok_or("not defined")?;
///
/// let ip = Some("2001:db8:1:2::7".parse()?);
/// let headers = |name: &str| (name == "x-client-id").then_some(&b"c1"[..]);
/// assert_eq!(client.value(ip, headers).as_deref(), Some(&b"c1"[..]));
/// assert_eq!(client.value(ip, |_| None).as_deref(), Some(&b"2001:db8:1:2::"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactSpec {
    name: FactName,
    sources: Vec<SourceSpec>,
}

/// A source of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceSpec {
    /// The client address, in the form that is [counted](net::rate_limit_address).
    Ip,
    /// A header of the request, by its name in lower case.
    Header(Box<str>),
    /// The digest of a header (`sha256:…`), by the name of the header in lower case.
    HeaderDigest(Box<str>),
}

impl FactSpec {
    pub(super) const fn new(name: FactName, sources: Vec<SourceSpec>) -> Self {
        Self { name, sources }
    }

    /// Returns the name of the fact.
    #[must_use]
    pub const fn name(&self) -> &FactName {
        &self.name
    }

    /// Returns the sources in order.
    #[must_use]
    pub fn sources(&self) -> &[SourceSpec] {
        &self.sources
    }

    /// Returns the value of the first source that has one. `ip` is the client address, and `header` returns the value of
    /// a header by its name in lower case: `None` if the request does not have it, or has it more than once.
    ///
    /// An empty value, or one that is longer than 1024 bytes, counts as missing. A digest can be that of a longer value.
    #[must_use]
    pub fn value<'r>(
        &self,
        ip: Option<IpAddr>,
        header: impl Fn(&str) -> Option<&'r [u8]>,
    ) -> Option<Cow<'r, [u8]>> {
        self.sources.iter().find_map(|source| match source {
            SourceSpec::Ip => {
                let address = net::rate_limit_address(ip?);
                Some(Cow::Owned(net::address_text(address).into_bytes()))
            }
            SourceSpec::Header(name) => {
                let value = self.without_scheme(name, header(name)?);
                (1..=MAX_FACT_LENGTH).contains(&value.len()).then_some(Cow::Borrowed(value))
            }
            SourceSpec::HeaderDigest(name) => {
                let value = header(name).filter(|value| !value.is_empty())?;
                Some(Cow::Owned(digest::of_key(value).into()))
            }
        })
    }

    /// Returns the key of `Authorization: Bearer KEY` if the fact is `api_key`; any other value unchanged.
    fn without_scheme<'r>(&self, header: &str, value: &'r [u8]) -> &'r [u8] {
        if self.name.meaning() != Meaning::ApiKey || header != AUTHORIZATION {
            return value;
        }
        match value.split_at_checked(BEARER.len()) {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case(BEARER) => key.trim_ascii(),
            _ => b"",
        }
    }
}

const AUTHORIZATION: &str = "authorization";
const BEARER: &[u8] = b"bearer ";

/// The facts of headers that contain secrets.
pub(super) const SECRET_HEADERS: [&str; 4] =
    ["header:authorization", "header:cookie", "header:proxy-authorization", "header:x-api-key"];

/// Returns whether a header contains a secret, by its name in lower case. Rules match and count such a header by its digest.
///
/// ```
/// assert!(tollgate::policy::is_secret_header("authorization"));
/// assert!(!tollgate::policy::is_secret_header("x-client-id"));
/// ```
#[must_use]
pub fn is_secret_header(name: &str) -> bool {
    SECRET_HEADERS.iter().any(|fact| fact.strip_prefix("header:") == Some(name))
}

/// Returns the digest of a secret as a fact value: `sha256:` and 64 hexadecimal digits. Rules match and count the header by
/// this value. They hash any other value, also one with the same text.
///
/// ```
/// let digest = tollgate::policy::secret_digest(b"s3cret");
/// assert!(digest.as_bytes().starts_with(b"sha256:1ec1c26b50d5"));
/// ```
#[must_use]
pub fn secret_digest(secret: &[u8]) -> FactValue<'static> {
    FactValue::of_digest(digest::of_key(secret))
}

#[cfg(test)]
mod tests {
    use crate::{Limit, Policy};

    fn value(sources: &str, headers: &[(&str, &[u8])]) -> Option<String> {
        value_of("client", sources, headers)
    }

    fn value_of(fact: &str, sources: &str, headers: &[(&str, &[u8])]) -> Option<String> {
        let text = format!("version: 1\nfacts: {{ {fact}: {sources} }}\n");
        let policy = Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap();
        let header =
            |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let ip = Some("192.0.2.7".parse().unwrap());
        let value = policy.fact_spec(fact).unwrap().value(ip, header)?;
        Some(String::from_utf8(value.into_owned()).unwrap())
    }

    #[test]
    fn first_source_with_a_value_counts() {
        let sources = "[{ header: X-Client-Id }, { header: authorization, digest: true }, ip]";
        assert_eq!(value(sources, &[("x-client-id", b"c1")]).as_deref(), Some("c1"));
        assert_eq!(value(sources, &[]).as_deref(), Some("192.0.2.7"));
        let digest = value(sources, &[("authorization", b"Bearer x")]).unwrap();
        assert!(digest.starts_with("sha256:") && !digest.contains("Bearer"), "{digest}");
        assert_eq!(value("{ header: x-client-id }", &[]), None);
        assert_eq!(value("ip", &[("x-client-id", b"c1")]).as_deref(), Some("192.0.2.7"));
    }

    #[test]
    fn unusable_values_count_as_missing() {
        let sources = "[{ header: x-client-id }, ip]";
        for unusable in [&b""[..], &[b'a'; 1025]] {
            let found = value(sources, &[("x-client-id", unusable)]);
            assert_eq!(found.as_deref(), Some("192.0.2.7"));
        }
        let sources = "[{ header: cookie, digest: true }, ip]";
        assert_eq!(value(sources, &[("cookie", b"")]).as_deref(), Some("192.0.2.7"));
        let long = value(sources, &[("cookie", &[b'a'; 4096])]).unwrap();
        assert!(long.starts_with("sha256:"), "the digest of a long value is a fact: {long}");
    }

    #[test]
    fn api_key_is_the_bearer_token() {
        let key = |value: &[u8]| {
            value_of("api_key", "{ header: authorization }", &[("authorization", value)])
        };
        assert_eq!(key(b"bearer  s3cret").as_deref(), Some("s3cret"));
        assert_eq!(key(b"Basic s3cret"), None);
        assert_eq!(key(b"Bearer "), None);
    }
}
