//! Who is at the other end of the connection.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use super::{Head, Source};
use crate::address::ClientAddress;

/// The address at the other end of the connection, for servers that are not axum's: put it into the extensions
/// of every request. Those of axum have it when they are served with `into_make_service_with_connect_info`.
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

fn peer(request: &Head<'_>) -> Option<IpAddr> {
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

/// The peer's address, to match.
pub(super) fn address<'r>(request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
    let peer = peer(request)?.to_canonical();
    Some(Cow::Owned(ClientAddress::text(peer).into_bytes()))
}

/// What of the peer's address is counted.
pub(super) fn network<'r>(request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
    Some(Cow::Owned(ClientAddress::fact(peer(request)?).into_bytes()))
}

/// As the fact `ip` the address itself, so that rules can match it; as any other, such as `client`, the network it is
/// counted by.
impl Source for ClientAddress {
    fn value<'r>(&'r self, request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
        let client = self.of(peer(request)?, request.headers);
        Some(Cow::Owned(Self::fact(client).into_bytes()))
    }

    fn value_as<'r>(&'r self, fact: &str, request: &Head<'r>) -> Option<Cow<'r, [u8]>> {
        if fact != "ip" {
            return self.value(request);
        }
        let client = self.of(peer(request)?, request.headers);
        Some(Cow::Owned(Self::text(client).into_bytes()))
    }
}
