//! Trusted proxies and their forwarding header.

use std::net::IpAddr;

use thiserror::Error;

use super::{NetworkError, Networks, forwarded, header_list, hop_address};

/// Parses the address of a header element.
type ParseAddress = fn(&[u8]) -> Option<IpAddr>;

/// The trusted proxies in front of a service, and the forwarding header that they write.
///
/// ```
/// use tollgate::net::{ProxyHeader, TrustedProxies};
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
/// use tollgate::net::ProxyHeader;
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

    /// Returns the forwarding header that the proxies write.
    #[must_use]
    pub const fn header(&self) -> ProxyHeader {
        self.header
    }

    /// Returns whether there is no trusted proxy.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nets == Networks::default()
    }

    /// Returns the client address of a request from this peer. `lines` are the values of the forwarding header, in order;
    /// several lines form one list.
    ///
    /// The client is the first hop, going back from the peer, that is not a trusted proxy; the rest may be forged. If a
    /// proxy wrote something that is not an address (`unknown`, `_hidden`), or beyond [`MAX_HOPS`](super::MAX_HOPS) or
    /// [`MAX_FORWARDED_BYTES`](super::MAX_FORWARDED_BYTES), the client is that proxy. An IPv4-mapped IPv6 address counts
    /// as the IPv4 address.
    ///
    /// ```
    /// use tollgate::net::TrustedProxies;
    ///
    /// let proxies = TrustedProxies::parse(["10.0.0.0/8"])?;
    /// let lines = || [&b"1.1.1.1, 203.0.113.7, 10.0.0.2"[..]].into_iter();
    /// assert_eq!(proxies.client_address("10.0.0.1".parse()?, lines()).to_string(), "203.0.113.7");
    /// assert_eq!(proxies.client_address("198.51.100.9".parse()?, lines()).to_string(), "198.51.100.9");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn client_address<'h>(
        &self,
        peer: IpAddr,
        lines: impl DoubleEndedIterator<Item = &'h [u8]>,
    ) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        let (last_comma, address): (header_list::LastComma, ParseAddress) = match self.header {
            ProxyHeader::XForwardedFor => (header_list::last_comma, hop_address::parse),
            ProxyHeader::Forwarded => (forwarded::last_comma, forwarded::address),
        };
        for hop in header_list::from_right(lines, last_comma).map_while(address) {
            client = hop;
            if !self.trusts(client) {
                break;
            }
        }
        client
    }
}

impl ProxyHeader {
    /// Returns the name of the header, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}

/// An invalid entry of a trusted proxy list.
///
/// ```
/// use tollgate::net::TrustedProxies;
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
