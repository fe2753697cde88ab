//! Who the client of a request is.

mod forwarded;
mod hops;
mod node;
mod proxies;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;

pub use proxies::{ProxyHeader, TrustedProxies, TrustedProxiesError};

/// Finds the address of a request's client, which a limit can be counted by.
///
/// A header with addresses is anyone's to send. It is read only where the peer is a proxy known to write it,
/// and only back to the first address that is none: whoever that is may have made up the rest.
///
/// ```
/// use http::HeaderMap;
/// use tollgate_tower::{ClientAddress, TrustedProxies};
///
/// let addresses = ClientAddress::behind(TrustedProxies::parse(["10.0.0.0/8"])?);
/// let mut headers = HeaderMap::new();
/// headers.insert("x-forwarded-for", "1.1.1.1, 203.0.113.7, 10.0.0.2".parse()?);
///
/// // 203.0.113.7 came to 10.0.0.2, and said that it came for 1.1.1.1.
/// assert_eq!(addresses.of("10.0.0.1".parse()?, &headers).to_string(), "203.0.113.7");
/// // Nobody vouches for the header here.
/// assert_eq!(addresses.of("198.51.100.9".parse()?, &headers).to_string(), "198.51.100.9");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientAddress {
    proxies: TrustedProxies,
}

impl ClientAddress {
    /// The peer is the client: no proxy stands before this service.
    #[must_use]
    pub fn peer() -> Self {
        Self::default()
    }

    /// These proxies may stand before this service.
    #[must_use]
    pub const fn behind(proxies: TrustedProxies) -> Self {
        Self { proxies }
    }

    /// The client of a request from this peer with this header.
    ///
    /// Going back from the peer it is the first that is not a trusted proxy. Where what a proxy wrote is no
    /// address (`unknown`, `_hidden`) or too far back to be looked at (64 hops, 8 KiB), it is that proxy.
    /// An IPv4 address that is written as an IPv6 one is that IPv4 address.
    #[must_use]
    pub fn of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.proxies.trusts(client) {
            return client;
        }
        for hop in self.proxies.hops(headers) {
            client = hop;
            if !self.proxies.trusts(client) {
                break;
            }
        }
        client
    }

    /// What one customer has: an IPv4 address, or the first 64 bits of an IPv6 one. Counted by single IPv6
    /// addresses a limit would be none, since anyone may have 2^64 of them.
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
        tollgate::net::rate_limit_address(address)
    }

    /// The [network](Self::network) as it goes into the fact `ip`, spelled in one way only, so that a client
    /// is one subject.
    ///
    /// ```
    /// use tollgate_tower::ClientAddress;
    ///
    /// assert_eq!(ClientAddress::fact("2001:DB8:1:2::5".parse()?), "2001:db8:1:2::");
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn fact(address: IpAddr) -> String {
        Self::text(Self::network(address))
    }

    /// The address as text.
    pub(crate) fn text(address: IpAddr) -> String {
        match address {
            IpAddr::V4(address) => dotted(address),
            IpAddr::V6(address) => address.to_string(),
        }
    }
}

/// An IPv4 address as text, in a twentieth of the time that formatting takes: it is done for every request.
fn dotted(address: Ipv4Addr) -> String {
    let mut text = String::with_capacity("255.255.255.255".len());
    for (place, octet) in address.octets().into_iter().enumerate() {
        if place > 0 {
            text.push('.');
        }
        if octet >= 100 {
            text.push(char::from(b'0' + octet / 100));
        }
        if octet >= 10 {
            text.push(char::from(b'0' + octet / 10 % 10));
        }
        text.push(char::from(b'0' + octet % 10));
    }
    text
}
