//! News of changes, from every node to every node.

use tollgate::StoreError;

use super::Directory;
use crate::failure::Failure;
use crate::resp::Command;
use crate::subscription::Listener;

/// Something that other nodes should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A subject has got room by a refund or a reset.
    QuotaFreed {
        /// Whose, as escaped text.
        subject: String,
    },
    /// A client's override is new, other, or gone.
    Override {
        /// Whose: the escaped text of a tenant and a client.
        client: String,
    },
}

/// What a watcher of changes is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// From now on every change is told. What happened before may have been missed.
    Subscribed,
    /// A change.
    Changed(Change),
    /// Until it is listening again, changes may be missed.
    SubscriptionLost,
}

impl Change {
    fn read(payload: &[u8]) -> Option<Self> {
        let (kind, rest) = payload.split_first()?;
        let text = std::str::from_utf8(rest).ok()?.to_owned();
        match kind {
            b's' => Some(Self::QuotaFreed { subject: text }),
            b'o' => Some(Self::Override { client: text }),
            _ => None,
        }
    }

    fn written(&self) -> String {
        match self {
            Self::QuotaFreed { subject } => format!("s{subject}"),
            Self::Override { client } => format!("o{client}"),
        }
    }
}

impl Directory {
    /// Tells every node of a change. Refunds, resets and overrides tell by themselves.
    ///
    /// # Errors
    /// Redis could not be told.
    pub async fn announce(&self, change: &Change) -> Result<(), StoreError> {
        let channel = self.shared.keys.channel();
        let command = Command::new("PUBLISH").arg(&channel).arg(change.written());
        let reply = self.shared.coalescer.router().ask(channel.as_bytes(), command).await;
        reply.map(|_| ()).map_err(Failure::into_store_error)
    }

    /// Calls `watcher` for everything that happens from now on, for as long as the store lives. It must not
    /// block.
    pub fn watch(&self, watcher: impl Fn(Event) + Send + Sync + 'static) {
        self.shared.watch.add(std::sync::Arc::new(Watcher(watcher)));
    }
}

struct Watcher<F>(F);

impl<F: Fn(Event) + Send + Sync> Listener for Watcher<F> {
    fn live(&self) {
        self.0(Event::Subscribed);
    }

    fn message(&self, payload: &[u8]) {
        if let Some(change) = Change::read(payload) {
            self.0(Event::Changed(change));
        }
    }

    fn lost(&self) {
        self.0(Event::SubscriptionLost);
    }
}
