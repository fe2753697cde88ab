//! Trusted proxies and their forwarding header.

use std::net::IpAddr;

use http::HeaderMap;
use thiserror::Error;
use tollgate::net::{NetworkError, Networks};

use super::{forwarded, header_list, hop_address};

/// Parses the address of a header element.
type ParseAddress = fn(&[u8]) -> Option<IpAddr>;

/// The trusted proxies in front of a service, and the forwarding header that they write.
///
/// ```
/// use tollgate_tower::{ProxyHeader, TrustedProxies};
///
/// let proxies = TrustedProxies::parse(["10.0.0.0/8", "::1"])?.with_header(ProxyHeader::Forwarded);
/// assert!(proxies.trusts("10.1.2.3".parse()?) && !proxies.trusts("192.0.2.1".parse()?));
///
/// let error = TrustedProxies::parse(["10.0.0.0/8", "my-proxy"]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "trusted proxy \"my-proxy\" must be an IP address or network, such as 192.0.2.7 or 192.0.2.0/24"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies {
    nets: Networks,
    header: ProxyHeader,
}

/// The forwarding header that the proxies write. Only one is read, because a proxy that writes one header passes the
/// other through as the client sent it.
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
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl TrustedProxies {
    /// Parses addresses and networks of proxies. An IPv4-mapped IPv6 network is an IPv4 network; a wider one contains
    /// IPv6 addresses only.
    ///
    /// # Errors
    /// Returns an error for an entry that is neither an address nor a network, or a network with host bits set, which
    /// is probably a mistake.
    pub fn parse<T: AsRef<str>>(
        entries: impl IntoIterator<Item = T>,
    ) -> Result<Self, TrustedProxiesError> {
        let nets = Networks::parse(entries).map_err(TrustedProxiesError)?;
        Ok(Self { nets, header: ProxyHeader::default() })
    }

    /// Sets the forwarding header that the proxies write.
    #[must_use]
    pub fn with_header(self, header: ProxyHeader) -> Self {
        Self { header, ..self }
    }

    /// Returns whether the address belongs to a trusted proxy.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.nets.contains(address)
    }

    /// Returns the forwarded addresses, nearest first, up to the first element that is not an address.
    pub(super) fn hops<'h>(&self, headers: &'h HeaderMap) -> impl Iterator<Item = IpAddr> + 'h {
        let (elements, address): (_, ParseAddress) = match self.header {
            ProxyHeader::XForwardedFor => (
                header_list::from_right(headers, "x-forwarded-for", header_list::last_comma),
                hop_address::parse,
            ),
            ProxyHeader::Forwarded => (
                header_list::from_right(headers, "forwarded", forwarded::last_comma),
                forwarded::address,
            ),
        };
        elements.map_while(address)
    }
}

/// An invalid entry of a trusted proxy list.
///
/// ```
/// use tollgate_tower::TrustedProxies;
///
/// let error = TrustedProxies::parse(["10.0.0.1/8"]).unwrap_err();
/// assert_eq!(error.entry(), "10.0.0.1/8");
/// assert_eq!(
///     error.to_string(),
///     "trusted proxy \"10.0.0.1/8\" has address bits set after the /8 prefix, did you mean \"10.0.0.0/8\"?"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("trusted proxy {0}")]
pub struct TrustedProxiesError(NetworkError);

impl TrustedProxiesError {
    /// Returns the entry, truncated if it is long.
    #[must_use]
    pub fn entry(&self) -> &str {
        self.0.entry()
    }
}
