//! The client address of a request.

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue};
use tollgate::net;
pub use tollgate::net::{ProxyHeader, TrustedProxies, TrustedProxiesError};

/// Determines the client address of a request, for counting per client.
///
/// Clients can send forwarding headers too. The header is read only if the peer is a trusted proxy, from the right, and
/// only up to the first address that is not a trusted proxy, because that client may have forged the rest.
///
/// ```
/// use http::HeaderMap;
/// use tollgate_tower::{ClientAddress, TrustedProxies};
///
/// let addresses = ClientAddress::behind_proxies(TrustedProxies::parse(["10.0.0.0/8"])?);
/// let mut headers = HeaderMap::new();
/// headers.insert("x-forwarded-for", "1.1.1.1, 203.0.113.7, 10.0.0.2".parse()?);
///
/// // 203.0.113.7 connected to 10.0.0.2 and claimed to forward for 1.1.1.1.
/// assert_eq!(addresses.resolve("10.0.0.1".parse()?, &headers).to_string(), "203.0.113.7");
/// // The peer is not a trusted proxy, so the header is ignored.
/// assert_eq!(addresses.resolve("198.51.100.9".parse()?, &headers).to_string(), "198.51.100.9");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientAddress {
    proxies: TrustedProxies,
}

impl ClientAddress {
    /// Uses the peer as the client: there is no proxy in front of the service.
    #[must_use]
    pub fn peer() -> Self {
        Self::default()
    }

    /// Reads the forwarding header of these proxies.
    #[must_use]
    pub const fn behind_proxies(proxies: TrustedProxies) -> Self {
        Self { proxies }
    }

    /// Returns the client address of a request from this peer with these headers.
    ///
    /// The client is the first hop, going back from the peer, that is not a trusted proxy. If a proxy wrote something
    /// that is not an address (`unknown`, `_hidden`), or beyond 64 hops or 8 KiB, the client is that proxy. An
    /// IPv4-mapped IPv6 address counts as the IPv4 address.
    #[must_use]
    pub fn resolve(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let lines = headers.get_all(self.proxies.header().as_str()).iter();
        self.proxies.client_address(peer, lines.map(HeaderValue::as_bytes))
    }

    /// Returns the network of one customer: the IPv4 address, or the /64 of an IPv6 address. A limit per single IPv6
    /// address would be ineffective, because a customer has 2^64 of them.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use tollgate_tower::ClientAddress;
    ///
    /// let network = |text: &str| text.parse().map(|ip: IpAddr| ClientAddress::network(ip).to_string());
    /// assert_eq!(network("2001:db8:1:2:a:b:c:d")?, "2001:db8:1:2::");
    /// assert_eq!(network("192.0.2.7")?, "192.0.2.7");
    /// assert_eq!(network("::ffff:192.0.2.7")?, "192.0.2.7");
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn network(address: IpAddr) -> IpAddr {
        net::rate_limit_address(address)
    }

    /// Returns the [network](Self::network) as a fact value, in canonical spelling so that a client is one subject.
    ///
    /// ```
    /// use tollgate_tower::ClientAddress;
    ///
    /// assert_eq!(ClientAddress::fact_value("2001:DB8:1:2::5".parse()?), "2001:db8:1:2::");
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn fact_value(address: IpAddr) -> String {
        net::address_text(Self::network(address))
    }
}
