//! Warnings about the configuration of proxies, each logged once.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::warn;

use super::Endpoint;

/// A header by which a proxy describes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForwardingHeader {
    ForwardedFor,
    ForwardedHost,
    ForwardedMethod,
    ForwardedUri,
    Host,
    OriginalMethod,
    OriginalUri,
}

impl ForwardingHeader {
    const COUNT: usize = 7;

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::ForwardedFor => "x-forwarded-for",
            Self::ForwardedHost => "x-forwarded-host",
            Self::ForwardedMethod => "x-forwarded-method",
            Self::ForwardedUri => "x-forwarded-uri",
            Self::Host => "host",
            Self::OriginalMethod => "x-original-method",
            Self::OriginalUri => "x-original-uri",
        }
    }

    /// Returns the fact that is unknown without the header.
    const fn fact(self) -> &'static str {
        match self {
            Self::ForwardedFor => "ip",
            Self::ForwardedHost | Self::Host => "host",
            Self::ForwardedMethod | Self::OriginalMethod => "method",
            Self::ForwardedUri | Self::OriginalUri => "path",
        }
    }
}

/// The warnings that were logged.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    slots: Once,
    peer: Once,
    missing: [Once; ForwardingHeader::COUNT],
}

/// A flag that is set once.
#[derive(Debug, Default)]
struct Once(AtomicBool);

impl Once {
    /// Returns true on the first call.
    fn is_first(&self) -> bool {
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed)
    }
}

impl Warnings {
    pub(super) fn warn_about_slots(&self) {
        if self.slots.is_first() {
            warn!(
                "the policy has concurrency limits, and forward auth has no call to release slots: \
                 the slots of decisions over forward auth end at their ttl"
            );
        }
    }

    /// Warns about a peer that is no trusted proxy.
    pub(super) fn warn_about_peer(&self, peer: IpAddr, has_no_proxies: bool) {
        if !self.peer.is_first() {
            return;
        }
        if has_no_proxies {
            warn!(
                %peer,
                "forward auth without --trusted-proxies: forwarding headers are ignored, and the peer counts as the \
                 client; set --trusted-proxies to the addresses of your proxies"
            );
        } else {
            warn!(
                %peer,
                "forward auth from a peer outside --trusted-proxies: its forwarding headers are ignored, and it counts \
                 as the client; add its address if it is your proxy"
            );
        }
    }

    /// Warns about a trusted proxy that does not send a header.
    pub(super) fn warn_about_missing(&self, header: ForwardingHeader, endpoint: Endpoint) {
        if self.missing.get(header as usize).is_some_and(Once::is_first) {
            let (header, fact) = (header.as_str(), header.fact());
            let path = match endpoint {
                Endpoint::Forwarded => "/auth",
                Endpoint::Nginx => "/auth/nginx",
            };
            warn!(
                header,
                fact,
                path,
                "a trusted proxy did not send this header, so this fact is unknown; rules that match it do not apply: \
                 configure the proxy as docs/PROXIES.md describes"
            );
        }
    }
}
