//! Change events between nodes.

use tollgate::StoreError;

use super::Directory;
use crate::resp::Command;
use crate::subscription::Listener;

/// A change that concerns other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A refund or reset has freed quota of a subject.
    QuotaFreed {
        /// The escaped subject.
        subject: String,
    },
    /// An override was stored, replaced or removed.
    Override {
        /// The escaped tenant and client.
        client: String,
    },
}

/// An event of [`Directory::watch`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// All changes from now on will be received. Earlier ones may have been missed.
    Subscribed,
    /// A change.
    Changed(Change),
    /// Changes may be missed until the next `Subscribed`.
    SubscriptionLost,
}

impl Change {
    fn parse(payload: &[u8]) -> Option<Self> {
        let (kind, rest) = payload.split_first()?;
        let text = std::str::from_utf8(rest).ok()?.to_owned();
        match kind {
            b's' => Some(Self::QuotaFreed { subject: text }),
            b'o' => Some(Self::Override { client: text }),
            _ => None,
        }
    }

    fn payload(&self) -> String {
        match self {
            Self::QuotaFreed { subject } => format!("s{subject}"),
            Self::Override { client } => format!("o{client}"),
        }
    }
}

impl Directory {
    /// Publishes a change to all nodes. Refunds, resets and overrides publish theirs automatically.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn announce(&self, change: &Change) -> Result<(), StoreError> {
        let channel = self.keys.channel();
        let command = Command::new("PUBLISH").arg(&channel).arg(change.payload());
        self.request(&channel, command).await.map(|_| ())
    }

    /// Calls `watcher` for every event from now on, until the store is dropped. It must not block.
    pub fn watch(&self, watcher: impl Fn(Event) + Send + Sync + 'static) {
        self.events.add_and_start(std::sync::Arc::new(Watcher(watcher)));
    }
}

struct Watcher<F>(F);

impl<F: Fn(Event) + Send + Sync> Listener for Watcher<F> {
    fn subscribed(&self) {
        self.0(Event::Subscribed);
    }

    fn message(&self, payload: &[u8]) {
        if let Some(change) = Change::parse(payload) {
            self.0(Event::Changed(change));
        }
    }

    fn lost(&self) {
        self.0(Event::SubscriptionLost);
    }
}
