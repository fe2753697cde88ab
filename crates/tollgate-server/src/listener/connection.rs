//! What a protocol knows about a connection: its peer, the shutdown, and the progress of its requests.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use super::timeouts::Progress;
use crate::metrics::FrontEndCounters;

/// One connection of a listener.
#[derive(Debug)]
pub struct Connection {
    peer: SocketAddr,
    progress: Arc<Progress>,
    drain: Drain,
    counters: Arc<FrontEndCounters>,
}

/// Completes when the connection should finish its request in progress and close.
#[derive(Debug, Clone)]
pub struct Drain(watch::Receiver<()>);

/// Keeps the connection from being idle until it is dropped.
#[derive(Debug)]
pub struct RequestInProgress(Arc<Progress>);

impl Connection {
    pub(super) const fn new(
        peer: SocketAddr,
        progress: Arc<Progress>,
        drain: Drain,
        counters: Arc<FrontEndCounters>,
    ) -> Self {
        Self { peer, progress, drain, counters }
    }

    /// Returns the TCP peer.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Records a complete request. Until the result is dropped, the idle time-out does not apply.
    #[must_use]
    pub fn begin_request(&self) -> RequestInProgress {
        self.progress.begin();
        RequestInProgress(Arc::clone(&self.progress))
    }

    /// Records that a part of the next request has arrived together with the last complete one. The time-out of incomplete
    /// requests applies to it.
    pub fn begin_next_request(&self) {
        self.progress.set_partial();
    }

    /// Counts decision requests of this front end, whatever their results are. Requests without authentication are not
    /// counted. A protocol with many requests in one read counts them with one call.
    pub fn count_requests(&self, count: u64) {
        self.counters.add_requests(count);
    }

    /// Declares that the protocol has messages outside of requests, such as HTTP/2 frames: after the first request,
    /// received bytes do not begin a request, and only the idle time-out applies.
    pub fn set_multiplexed(&self) {
        self.progress.set_multiplexed();
    }

    /// Returns the shutdown signal of this connection.
    #[must_use]
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    pub(crate) const fn counters(&self) -> &Arc<FrontEndCounters> {
        &self.counters
    }

    pub(crate) const fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Drain {
    pub(crate) const fn new(stop: watch::Receiver<()>) -> Self {
        Self(stop)
    }

    /// Returns whether the connection should close after its request in progress.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Waits until the connection should close.
    pub async fn requested(&mut self) {
        // The sender is dropped at shutdown and sends nothing before.
        let _ = self.0.changed().await;
    }
}
