//! The peer address of the connection.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use tollgate::{FactValue, net};

use super::{FactSource, RequestHead};
use crate::address::ClientAddress;

/// The peer address, for servers other than axum: insert it into the extensions of every request. axum provides it when
/// the app is served with `into_make_service_with_connect_info`.
///
/// ```
/// use std::net::SocketAddr;
/// use tollgate_tower::PeerAddress;
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(PeerAddress(SocketAddr::from(([192, 0, 2, 1], 4711))));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

pub(crate) fn peer_ip(request: &RequestHead<'_>) -> Option<IpAddr> {
    if let Some(PeerAddress(peer)) = request.extensions.get() {
        return Some(peer.ip());
    }
    #[cfg(feature = "axum")]
    if let Some(axum::extract::ConnectInfo(peer)) =
        request.extensions.get::<axum::extract::ConnectInfo<SocketAddr>>()
    {
        return Some(peer.ip());
    }
    None
}

/// Returns the peer address in full, for matching.
pub(super) fn address<'r>(request: &RequestHead<'r>) -> Option<FactValue<'r>> {
    Some(FactValue::from(peer_ip(request)?.to_canonical()))
}

/// Returns the peer address as it is counted, IPv6 by its /64.
#[inline]
pub(super) fn network<'r>(request: &RequestHead<'r>) -> Option<FactValue<'r>> {
    Some(FactValue::from(ClientAddress::network(peer_ip(request)?)))
}

impl ClientAddress {
    /// Returns the address for a fact: in full for `ip`, and as it is counted for any other fact.
    fn address_for(&self, fact: &str, request: &RequestHead<'_>) -> Option<IpAddr> {
        let client = self.resolve(peer_ip(request)?, request.headers);
        Some(if fact == "ip" { client } else { Self::network(client) })
    }
}

/// The fact `ip` is the full address, so that rules can match it. Any other fact, such as `client`, is the address as it
/// is counted.
impl FactSource for ClientAddress {
    fn value<'r>(&'r self, request: &RequestHead<'r>) -> Option<Cow<'r, [u8]>> {
        self.value_as("client", request)
    }

    fn value_as<'r>(&'r self, fact: &str, request: &RequestHead<'r>) -> Option<Cow<'r, [u8]>> {
        let address = self.address_for(fact, request)?;
        Some(Cow::Owned(net::address_text(address).into_bytes()))
    }

    fn fact_value<'r>(&'r self, fact: &str, request: &RequestHead<'r>) -> Option<FactValue<'r>> {
        self.address_for(fact, request).map(FactValue::from)
    }
}
