//! The one subscription of a store, started on first use, and its listeners.

use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{Listener, Subscription};
use crate::connection::Route;
use crate::link::LinkLimits;

/// A subscription to one channel with any number of listeners.
pub(crate) struct SharedSubscription {
    route: Route,
    limits: LinkLimits,
    channel: String,
    listeners: Arc<Listeners>,
    subscription: OnceLock<Subscription>,
}

/// Forwards all events to each listener.
#[derive(Default)]
struct Listeners {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_subscribed: bool,
    listeners: Vec<Arc<dyn Listener>>,
}

impl fmt::Debug for SharedSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSubscription").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl SharedSubscription {
    pub(crate) fn new(route: Route, limits: LinkLimits, channel: String) -> Self {
        let listeners = Arc::default();
        Self { route, limits, channel, listeners, subscription: OnceLock::new() }
    }

    /// Adds a listener. Does not start the subscription.
    pub(crate) fn add(&self, listener: Arc<dyn Listener>) {
        self.listeners.add(listener);
    }

    /// Adds a listener and starts the subscription. Needs a runtime.
    pub(crate) fn add_and_start(&self, listener: Arc<dyn Listener>) {
        self.listeners.add(listener);
        self.start();
    }

    /// Starts the subscription, unless it is started. Needs a runtime.
    pub(crate) fn start(&self) {
        self.subscription.get_or_init(|| {
            let (route, channel) = (self.route.clone(), self.channel.clone());
            let listener = Arc::clone(&self.listeners) as Arc<dyn Listener>;
            Subscription::start(route, self.limits, channel, listener)
        });
    }
}

impl Listeners {
    /// Adds a listener. If subscribed, notifies it immediately. The lock keeps all events in order.
    fn add(&self, listener: Arc<dyn Listener>) {
        let mut state = self.state.lock();
        if state.is_subscribed {
            listener.subscribed();
        }
        state.listeners.push(listener);
    }
}

impl Listener for Listeners {
    fn subscribed(&self) {
        let mut state = self.state.lock();
        state.is_subscribed = true;
        state.listeners.iter().for_each(|listener| listener.subscribed());
    }

    fn message(&self, payload: &[u8]) {
        let state = self.state.lock();
        state.listeners.iter().for_each(|listener| listener.message(payload));
    }

    fn lost(&self) {
        let mut state = self.state.lock();
        state.is_subscribed = false;
        state.listeners.iter().for_each(|listener| listener.lost());
    }
}
