//! Proxies whose word is taken for whom they speak.

use std::net::IpAddr;

use http::HeaderMap;
use thiserror::Error;
use tollgate::net::{NetworkError, Networks};

use super::{forwarded, hops, node};

/// The address that an element of a header names.
type ReadAddress = fn(&[u8]) -> Option<IpAddr>;

/// The proxies in front of a service, and the header they write.
///
/// ```
/// use tollgate_tower::{ProxyHeader, TrustedProxies};
///
/// let proxies = TrustedProxies::parse(["10.0.0.0/8", "::1"])?.reading(ProxyHeader::Forwarded);
/// assert!(proxies.trusts("10.1.2.3".parse()?) && !proxies.trusts("192.0.2.1".parse()?));
///
/// let error = TrustedProxies::parse(["10.0.0.0/8", "my-proxy"]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "trusted proxy \"my-proxy\" must be an address or a network, such as 192.0.2.7 or 192.0.2.0/24"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies {
    nets: Networks,
    header: ProxyHeader,
}

/// The header in which proxies write whom they speak for. One only is read: a proxy that writes one passes
/// the other on as the client sent it.
///
/// ```
/// use tollgate_tower::ProxyHeader;
///
/// assert_eq!(ProxyHeader::default(), ProxyHeader::XForwardedFor);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ProxyHeader {
    /// `X-Forwarded-For`: addresses, separated by commas.
    #[default]
    XForwardedFor,
    /// `Forwarded`, as RFC 7239 has it.
    Forwarded,
}

impl TrustedProxies {
    /// Addresses and networks of proxies. A network of IPv4 addresses written as IPv6 ones is that of IPv4; a
    /// wider one is of IPv6 alone.
    ///
    /// # Errors
    /// An entry that is neither, or a network with bits set beyond its length, which may not be the one that
    /// was meant.
    pub fn parse<T: AsRef<str>>(
        entries: impl IntoIterator<Item = T>,
    ) -> Result<Self, TrustedProxiesError> {
        let nets = Networks::parse(entries).map_err(TrustedProxiesError)?;
        Ok(Self { nets, header: ProxyHeader::default() })
    }

    /// The same proxies, which write this header.
    #[must_use]
    pub fn reading(self, header: ProxyHeader) -> Self {
        Self { header, ..self }
    }

    /// Whether it is the address of one of them.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.nets.contains(address)
    }

    /// Whom each proxy spoke for, the nearest first, up to the first that is no address.
    pub(super) fn hops<'h>(&self, headers: &'h HeaderMap) -> impl Iterator<Item = IpAddr> + 'h {
        let (elements, address): (_, ReadAddress) = match self.header {
            ProxyHeader::XForwardedFor => {
                (hops::from_right(headers, "x-forwarded-for", hops::last_comma), node::address)
            }
            ProxyHeader::Forwarded => {
                (hops::from_right(headers, "forwarded", forwarded::last_comma), forwarded::address)
            }
        };
        elements.map_while(address)
    }
}

/// An entry of trusted proxies that is no address and no network.
///
/// ```
/// use tollgate_tower::TrustedProxies;
///
/// let error = TrustedProxies::parse(["10.0.0.1/8"]).unwrap_err();
/// assert_eq!(error.entry(), "10.0.0.1/8");
/// assert_eq!(
///     error.to_string(),
///     "trusted proxy \"10.0.0.1/8\" has bits set beyond its length, did you mean \"10.0.0.0/8\"?"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("trusted proxy {0}")]
pub struct TrustedProxiesError(NetworkError);

impl TrustedProxiesError {
    /// The entry, or the beginning of a long one.
    #[must_use]
    pub fn entry(&self) -> &str {
        self.0.entry()
    }
}
