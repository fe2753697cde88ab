//! State of a node that all requests share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use tollgate::policy::Policy;
use tollgate::{
    BreakerState, Clock, Limiter, LimiterError, Outcome, Query, SystemClock, Timestamp, Verb,
};

use crate::access::Guard;
use crate::api::admin::OverrideStore;
use crate::backend::Backend;
use crate::live::Live;
use crate::metrics::{Exhausted, Metrics};
use crate::node_report::RefusedKeys;
use crate::policy_file::PolicyFile;
use crate::reload::ReloadRequests;
use crate::settings::Settings;
use crate::store_setup::{StoreInfo, StoreSetup};
use crate::warnings::Warnings;

/// The shared state of a node.
#[derive(Debug)]
pub(crate) struct App {
    limiter: Limiter<Backend, Metrics>,
    policy_file: PolicyFile,
    policy_load: Mutex<PolicyLoad>,
    node: Node,
    store_info: StoreInfo,
    warnings: Mutex<Warnings>,
    is_ready: AtomicBool,
    guard: Guard,
    override_store: OnceLock<OverrideStore>,
    reloads: ReloadRequests,
    refused: RefusedKeys,
    live: Arc<Live>,
}

/// Identity of this node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) address: SocketAddr,
    /// The address as text, as shown.
    pub(crate) address_text: String,
    pub(crate) started: Timestamp,
}

/// Time of the last successful policy load, and the error of a later failed one.
#[derive(Debug, Clone)]
pub(crate) struct PolicyLoad {
    pub(crate) at: Timestamp,
    pub(crate) error: Option<String>,
}

impl App {
    pub(crate) fn new(
        settings: &Settings,
        store: StoreSetup,
        address: SocketAddr,
        policy: Policy,
        policy_file: PolicyFile,
        reloads: ReloadRequests,
    ) -> Self {
        let exhausted = match &store.backend {
            Backend::Memory(_) => Exhausted::Local,
            Backend::Redis(_) => Exhausted::Distributed,
        };
        let started = SystemClock::new().now();
        Self {
            limiter: Limiter::with_observer(
                store.backend,
                policy,
                Metrics::new(exhausted, store.watch),
            ),
            policy_file,
            policy_load: Mutex::new(PolicyLoad { at: started, error: None }),
            node: Node {
                id: settings.node_id.clone(),
                address,
                address_text: address.to_string(),
                started,
            },
            store_info: store.info,
            warnings: Mutex::default(),
            is_ready: AtomicBool::new(false),
            guard: Guard::new(settings.tokens.clone()),
            override_store: OnceLock::new(),
            reloads,
            refused: RefusedKeys::new(),
            live: Arc::new(Live::new()),
        }
    }

    pub(crate) fn limiter(&self) -> &Limiter<Backend, Metrics> {
        &self.limiter
    }

    /// Decides a query and encodes the outcome. Records refused takes for the node report.
    pub(crate) async fn decide<T>(
        &self,
        verb: Verb,
        query: &Query<'_>,
        encode: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let encode = |outcome: &Outcome<'_, '_>| {
            if verb == Verb::Take {
                self.refused.note(query, outcome);
            }
            encode(outcome)
        };
        self.limiter.decide(verb, query, encode).await
    }

    /// Returns the recently refused keys.
    pub(crate) const fn refused(&self) -> &RefusedKeys {
        &self.refused
    }

    /// Returns the live view.
    pub(crate) const fn live(&self) -> &Arc<Live> {
        &self.live
    }

    pub(crate) fn backend(&self) -> &Backend {
        self.limiter.store()
    }

    /// Returns whether this node is in degraded mode because Redis is unavailable.
    pub(crate) fn is_degraded(&self) -> bool {
        let fallback = self.backend().fallback();
        fallback.is_some_and(|store| store.breaker() != BreakerState::Closed)
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

    /// Returns the facts about the store.
    pub(crate) fn store_info(&self) -> &StoreInfo {
        &self.store_info
    }

    /// Returns the warnings for operators.
    pub(crate) fn warnings(&self) -> MutexGuard<'_, Warnings> {
        self.warnings.lock()
    }

    pub(crate) fn policy_load(&self) -> PolicyLoad {
        self.policy_load.lock().clone()
    }

    /// Activates a policy; counters are kept.
    pub(crate) fn set_policy(&self, policy: Policy) {
        self.limiter.set_policy(policy);
        *self.policy_load.lock() = PolicyLoad { at: SystemClock::new().now(), error: None };
    }

    /// Records why the policy of the file is not active.
    pub(crate) fn note_policy_error(&self, reason: String) {
        self.policy_load.lock().error = Some(reason);
    }

    /// Returns the token checks.
    pub(crate) const fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Returns the overrides and the audit log; `None` before they are opened.
    pub(crate) fn override_store(&self) -> Option<&OverrideStore> {
        self.override_store.get()
    }

    /// Sets the overrides and the audit log, once.
    pub(crate) fn set_override_store(&self, store: OverrideStore) {
        let _ = self.override_store.set(store);
    }

    /// Reloads the policy file. Returns the reason if the file is not usable.
    pub(crate) async fn reload(&self) -> Result<(), String> {
        self.reloads.send().await
    }

    /// Returns whether this node should receive requests.
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
