//! Failovers of a primary that sentinels monitor.
//!
//! A connection ends when it fails, when its server turns out to be a replica, and when a sentinel announces another
//! primary. The next connection queries the sentinels. So the store follows failovers.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::connection::{Route, Sentinels, Target};
use crate::link::{Link, LinkLimits};
use crate::subscription::{Listener, Subscription};

/// The channel on which sentinels announce a new primary.
const SWITCH_CHANNEL: &str = "+switch-master";

/// Reconnects a link when a sentinel announces another primary.
pub(crate) struct FailoverWatcher {
    sentinels: Arc<Sentinels>,
    limits: LinkLimits,
    subscriptions: OnceLock<Vec<Subscription>>,
}

impl FailoverWatcher {
    pub(crate) const fn new(sentinels: Arc<Sentinels>, limits: LinkLimits) -> Self {
        Self { sentinels, limits, subscriptions: OnceLock::new() }
    }

    /// Subscribes to all sentinels, unless that is done. Needs a runtime.
    pub(crate) fn start(&self, link: &Link) {
        let subscribe = |sentinel: &Target| {
            let master = self.sentinels.master().to_owned();
            let listener = SwitchListener { master, link: link.clone() };
            let (route, channel) = (Route::Fixed(sentinel.clone()), SWITCH_CHANNEL.to_owned());
            Subscription::start(route, self.limits, channel, Arc::new(listener))
        };
        let sentinels = self.sentinels.targets();
        self.subscriptions.get_or_init(|| sentinels.iter().map(subscribe).collect());
    }
}

impl fmt::Debug for FailoverWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailoverWatcher")
            .field("sentinels", &self.sentinels)
            .finish_non_exhaustive()
    }
}

/// Listens to one sentinel.
struct SwitchListener {
    master: String,
    link: Link,
}

impl Listener for SwitchListener {
    fn subscribed(&self) {}

    fn message(&self, payload: &[u8]) {
        let name = payload.split(|byte| *byte == b' ').next();
        if name == Some(self.master.as_bytes()) {
            self.link.reconnect();
        }
    }

    fn lost(&self) {}
}
