//! The one subscription of a store, begun when it is first needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::Address;
use crate::link::Patience;
use crate::subscription::{Listener, Subscription};

/// A subscription to be.
pub(crate) struct Watch {
    address: Address,
    patience: Patience,
    channel: String,
    begun: OnceLock<Subscription>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl Watch {
    pub(crate) const fn new(address: Address, patience: Patience, channel: String) -> Self {
        Self { address, patience, channel, begun: OnceLock::new() }
    }

    /// Begins to listen, unless that has begun.
    pub(crate) fn ensure(&self, listener: impl FnOnce() -> Arc<dyn Listener>) {
        self.begun.get_or_init(|| {
            let (address, patience) = (self.address.clone(), self.patience.clone());
            Subscription::start(address, patience, self.channel.clone(), listener())
        });
    }
}
