//! One who watches: events, as long as there are some.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use tokio::sync::watch;
use tokio::time::{Duration, Instant, timeout_at};

use super::frame::Scope;
use super::{Live, Moment};
use crate::metrics::CountGuard;

/// The most that watch one node.
const MOST: u64 = 200;
/// After so long a stream ends, and who still watches asks again: whoever may no longer is not let in.
const LONGEST: Duration = Duration::from_secs(600);

/// A browser asks again so soon after a stream has ended, in milliseconds.
const SOON: &[u8] = b"retry: 1000\n\n";

/// One who watches. They are counted as long as this lives.
#[derive(Debug)]
pub(crate) struct Watcher {
    live: Arc<Live>,
    moments: watch::Receiver<Moment>,
    /// What was sent last.
    policy: Bytes,
    scope: Option<Scope>,
    until: Instant,
    _counted: CountGuard,
}

impl Watcher {
    /// One more; none if there are too many.
    pub(crate) fn new(live: &Arc<Live>) -> Option<Self> {
        let counted = CountGuard::try_new(&live.watchers, MOST)?;
        live.is_history_wanted.store(true, Ordering::Relaxed);
        Some(Self {
            live: Arc::clone(live),
            moments: live.moments.subscribe(),
            policy: Bytes::new(),
            scope: None,
            until: Instant::now() + LONGEST,
            _counted: counted,
        })
    }

    /// The next events; none when there are no more. Moments that passed while nobody read are left out.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if *self.moments.borrow_and_update() == Moment::Closed {
                return None;
            }
            timeout_at(self.until, self.moments.changed()).await.ok()?.ok()?;
            let events = self.events();
            if events.is_some() {
                return events;
            }
        }
    }

    /// What has come since; none if what comes first is not there yet.
    fn events(&mut self) -> Option<Bytes> {
        if *self.moments.borrow() == Moment::Closed {
            return None;
        }
        let shown = self.live.shown.lock();
        let mut events = BytesMut::new();
        if self.scope != shown.scope && shown.history.is_none() {
            self.live.is_history_wanted.store(true, Ordering::Relaxed);
            return None;
        }
        if self.policy != shown.policy {
            self.policy = shown.policy.clone();
            events.extend_from_slice(&shown.policy);
        }
        if self.scope.is_none() {
            events.extend_from_slice(SOON);
        }
        if self.scope != shown.scope {
            self.scope = shown.scope;
            events.extend_from_slice(shown.history.as_deref().unwrap_or_default());
        }
        events.extend_from_slice(&shown.frame);
        Some(events.freeze())
    }
}
