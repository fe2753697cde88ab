//! One live stream: server-sent events for a dashboard or `tollgate top`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use tokio::sync::watch;
use tokio::time::{Duration, Instant, timeout_at};

use super::frame::Scope;
use super::{Live, Tick};
use crate::metrics::CountGuard;

/// Maximum live streams of one node.
const MAX_WATCHERS: u64 = 200;
/// Maximum length of a stream. The client then reconnects, which checks its authorization again.
const MAX_STREAM: Duration = Duration::from_secs(600);

/// Reconnection delay for browsers, in milliseconds.
const RETRY_FIELD: &[u8] = b"retry: 1000\n\n";

/// A client of the live view, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    live: Arc<Live>,
    ticks: watch::Receiver<Tick>,
    /// The policy event sent last.
    policy: Bytes,
    /// The scope of the history sent last.
    scope: Option<Scope>,
    deadline: Instant,
    _count: CountGuard,
}

impl Watcher {
    /// Opens a stream; `None` if there are too many.
    pub(crate) fn new(live: &Arc<Live>) -> Option<Self> {
        let count = CountGuard::try_new(&live.watchers, MAX_WATCHERS)?;
        live.is_history_wanted.store(true, Ordering::Relaxed);
        Some(Self {
            live: Arc::clone(live),
            ticks: live.ticks.subscribe(),
            policy: Bytes::new(),
            scope: None,
            deadline: Instant::now() + MAX_STREAM,
            _count: count,
        })
    }

    /// Waits for the next events; `None` at the end of the stream. Skips frames that the client was too slow to read.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if *self.ticks.borrow_and_update() == Tick::Closed {
                return None;
            }
            timeout_at(self.deadline, self.ticks.changed()).await.ok()?.ok()?;
            let events = self.events();
            if events.is_some() {
                return events;
            }
        }
    }

    /// Returns the new events; `None` while the history, which comes first, is not built yet.
    fn events(&mut self) -> Option<Bytes> {
        if *self.ticks.borrow() == Tick::Closed {
            return None;
        }
        let current = self.live.current.lock();
        let mut events = BytesMut::new();
        if self.scope != current.scope && current.history.is_none() {
            self.live.is_history_wanted.store(true, Ordering::Relaxed);
            return None;
        }
        if self.policy != current.policy {
            self.policy = current.policy.clone();
            events.extend_from_slice(&current.policy);
        }
        if self.scope.is_none() {
            events.extend_from_slice(RETRY_FIELD);
        }
        if self.scope != current.scope {
            self.scope = current.scope;
            events.extend_from_slice(current.history.as_deref().unwrap_or_default());
        }
        events.extend_from_slice(&current.frame);
        Some(events.freeze())
    }
}
