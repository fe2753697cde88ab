//! Warnings about the configuration of proxies, each logged at most once per interval: a client that causes a warning
//! does not hide that of a proxy for ever.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

/// Minimum time between two warnings about the same condition.
const INTERVAL: Duration = Duration::from_secs(3600);

/// The warnings that were logged.
#[derive(Debug)]
pub(super) struct Warnings {
    start: Instant,
    has_slots: AtomicBool,
    peer: Condition,
    missing: [Condition; ForwardingHeader::COUNT],
}

/// A condition that causes warnings.
#[derive(Debug, Default)]
struct Condition {
    /// Time after which the next warning is due, in seconds since the start.
    due: AtomicU64,
    /// Requests with this condition since the last warning.
    requests: AtomicU64,
}

impl Condition {
    /// Counts a request. If a warning is due, returns the number of requests since the last one.
    fn count(&self, now: Duration) -> Option<u64> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (due, now) = (self.due.load(Ordering::Relaxed), now.as_secs());
        let next = now + INTERVAL.as_secs();
        let is_due = now >= due
            && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        is_due.then(|| self.requests.swap(0, Ordering::Relaxed))
    }
}

impl Default for Warnings {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            has_slots: AtomicBool::default(),
            peer: Condition::default(),
            missing: Default::default(),
        }
    }
}

impl Warnings {
    /// Warns once: the policy of a trusted proxy is checked at the start, and this one may have come later.
    pub(super) fn warn_about_slots(&self) {
        if !self.has_slots.load(Ordering::Relaxed) && !self.has_slots.swap(true, Ordering::Relaxed)
        {
            warn!(
                "the policy has concurrency limits, and forward auth has no call to release slots: \
                 the slots of decisions over forward auth end at their ttl"
            );
        }
    }

    /// Warns about a peer that is no trusted proxy.
    pub(super) fn warn_about_peer(&self, peer: IpAddr, has_no_proxies: bool) {
        let Some(requests) = self.peer.count(self.start.elapsed()) else { return };
        if has_no_proxies {
            warn!(
                %peer,
                requests,
                "forward auth without --trusted-proxies: forwarding headers are ignored, and the peer counts as the \
                 client; set --trusted-proxies to the addresses of your proxies"
            );
        } else {
            warn!(
                %peer,
                requests,
                "forward auth from a peer outside --trusted-proxies: its forwarding headers are ignored, and it counts \
                 as the client; add its address if it is your proxy"
            );
        }
    }

    /// Warns about a trusted proxy that does not send a header.
    pub(super) fn warn_about_missing(&self, header: ForwardingHeader, endpoint: Endpoint) {
        let condition = self.missing.get(header as usize);
        let due = condition.and_then(|condition| condition.count(self.start.elapsed()));
        if let Some(requests) = due {
            let (header, fact) = (header.as_str(), header.fact());
            let path = match endpoint {
                Endpoint::Forwarded => "/auth",
                Endpoint::Nginx => "/auth/nginx",
            };
            warn!(
                header,
                fact,
                path,
                requests,
                "a trusted proxy did not send this header, so this fact is unknown; rules that match it do not apply: \
                 configure the proxy as docs/PROXIES.md describes"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_repeated_after_an_interval_with_their_number() {
        let condition = Condition::default();
        assert_eq!(condition.count(Duration::ZERO), Some(1));
        for _ in 0..5 {
            assert_eq!(condition.count(INTERVAL - Duration::from_secs(1)), None);
        }
        assert_eq!(condition.count(INTERVAL), Some(6));
        assert_eq!(condition.count(INTERVAL), None);
    }
}
