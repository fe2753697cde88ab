//! The one subscription of a store, begun when it is first needed, and those who hear from it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::link::Patience;
use crate::route::Route;
use crate::subscription::{Listener, Subscription};

/// A subscription to be.
pub(crate) struct Watch {
    route: Route,
    patience: Patience,
    channel: String,
    listeners: Arc<Listeners>,
    begun: OnceLock<Subscription>,
}

/// All who hear the same.
#[derive(Default)]
struct Listeners {
    state: Mutex<Hearing>,
}

#[derive(Default)]
struct Hearing {
    is_live: bool,
    listeners: Vec<Arc<dyn Listener>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl Watch {
    pub(crate) fn new(route: Route, patience: Patience, channel: String) -> Self {
        let listeners = Arc::default();
        Self { route, patience, channel, listeners, begun: OnceLock::new() }
    }

    /// Lets one more hear, once listening begins.
    pub(crate) fn expect(&self, listener: Arc<dyn Listener>) {
        self.listeners.add(listener);
    }

    /// Lets one more hear, from now on. Needs a runtime.
    pub(crate) fn add(&self, listener: Arc<dyn Listener>) {
        self.listeners.add(listener);
        self.begin();
    }

    /// Begins to listen, unless that has begun. Needs a runtime.
    pub(crate) fn begin(&self) {
        self.begun.get_or_init(|| {
            let (route, channel) = (self.route.clone(), self.channel.clone());
            let listener = Arc::clone(&self.listeners) as Arc<dyn Listener>;
            Subscription::start(route, self.patience, channel, listener)
        });
    }
}

impl Listeners {
    /// One that comes late is told at once how things stand. Nobody hears out of order, because each is
    /// told under the lock.
    fn add(&self, listener: Arc<dyn Listener>) {
        let mut state = self.state.lock();
        if state.is_live {
            listener.live();
        }
        state.listeners.push(listener);
    }
}

impl Listener for Listeners {
    fn live(&self) {
        let mut state = self.state.lock();
        state.is_live = true;
        state.listeners.iter().for_each(|listener| listener.live());
    }

    fn message(&self, payload: &[u8]) {
        let state = self.state.lock();
        state.listeners.iter().for_each(|listener| listener.message(payload));
    }

    fn lost(&self) {
        let mut state = self.state.lock();
        state.is_live = false;
        state.listeners.iter().for_each(|listener| listener.lost());
    }
}
