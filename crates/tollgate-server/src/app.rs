//! What every request of a node shares.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tollgate::policy::Policy;
use tollgate::{Clock, Limiter, MemoryStore, SystemClock, Timestamp};

use crate::metrics::Metrics;
use crate::policy_file::PolicyFile;
use crate::settings::Settings;

/// Where counters live.
pub(crate) type Backend = MemoryStore;

/// One node.
#[derive(Debug)]
pub(crate) struct App {
    limiter: Limiter<Backend, Metrics>,
    policy_file: PolicyFile,
    loaded: Mutex<Loaded>,
    node: Node,
    store: String,
    is_ready: AtomicBool,
}

/// Who this node is.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) address: SocketAddr,
    pub(crate) started: Timestamp,
}

/// When the policy in force was loaded, and what was wrong with the last attempt since.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) at: Timestamp,
    pub(crate) error: Option<String>,
}

impl App {
    pub(crate) fn new(
        settings: &Settings,
        address: SocketAddr,
        policy: Policy,
        policy_file: PolicyFile,
    ) -> Self {
        let store =
            MemoryStore::builder().max_keys(settings.max_keys).at_cap(settings.at_cap).build();
        let started = SystemClock::new().now();
        Self {
            limiter: Limiter::new(store, policy, Metrics::default()),
            policy_file,
            loaded: Mutex::new(Loaded { at: started, error: None }),
            node: Node { id: settings.node_id.clone(), address, started },
            store: settings.store.to_string(),
            is_ready: AtomicBool::new(false),
        }
    }

    pub(crate) fn limiter(&self) -> &Limiter<Backend, Metrics> {
        &self.limiter
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        self.limiter.observer()
    }

    pub(crate) fn policy_file(&self) -> &PolicyFile {
        &self.policy_file
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn node_id(&self) -> &str {
        &self.node.id
    }

    /// The store and why it was chosen.
    pub(crate) fn store(&self) -> &str {
        &self.store
    }

    pub(crate) fn loaded(&self) -> Loaded {
        self.loaded.lock().clone()
    }

    /// Puts a policy in force; counters are kept.
    pub(crate) fn set_policy(&self, policy: Policy) {
        self.limiter.set_policy(policy);
        *self.loaded.lock() = Loaded { at: SystemClock::new().now(), error: None };
    }

    /// Remembers why the policy of the file is not in force.
    pub(crate) fn note_policy_error(&self, reason: String) {
        self.loaded.lock().error = Some(reason);
    }

    /// Whether requests should be sent here.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_not_ready(&self) {
        self.is_ready.store(false, Ordering::Relaxed);
    }
}
