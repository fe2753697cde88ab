//! Shared state of this node: its limiter, its identity, and what operators see of it.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tollgate::policy::Policy;
use tollgate::{Clock, Limiter, MemoryStore, Series, SystemClock, Timestamp};

use super::history::LocalHistory;
use super::live::Live;
use super::overrides::OverrideStore;
use super::report::RefusedKeys;
use super::warnings::Warnings;
use crate::events::{EventKind, EventLog};
use crate::files::policy_file::PolicyFile;
use crate::metrics::Metrics;
use crate::shutdown::Readiness;
use crate::store::{Backend, StoreInfo};

/// The limiter of a node: any configured store, observed by the metrics.
pub(crate) type NodeLimiter = Limiter<Backend, Metrics>;
/// Decisions of this node, one after the other.
pub(crate) type NodeSeries<'l> = Series<'l, Backend, Metrics>;

/// The shared state of a node.
#[derive(Debug)]
pub(crate) struct NodeContext {
    limiter: Arc<NodeLimiter>,
    overrides: Arc<OverrideStore>,
    policy_file: PolicyFile,
    policy_load: Mutex<PolicyLoad>,
    identity: Identity,
    store_info: StoreInfo,
    warnings: Mutex<Warnings>,
    readiness: Arc<Readiness>,
    refused: RefusedKeys,
    live: Arc<Live>,
    history: LocalHistory,
}

/// Identity of this node.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) id: String,
    pub(crate) address: SocketAddr,
    /// The address as text, as shown.
    pub(crate) address_text: String,
    pub(crate) started: Timestamp,
}

impl Identity {
    pub(crate) fn new(id: &str, address: SocketAddr) -> Self {
        Self {
            id: id.to_owned(),
            address,
            address_text: address.to_string(),
            started: SystemClock::new().now(),
        }
    }
}

/// Time of the last successful policy load, and the error of a later failed one.
#[derive(Debug, Clone)]
pub(crate) struct PolicyLoad {
    pub(crate) at: Timestamp,
    pub(crate) error: Option<String>,
}

impl NodeContext {
    pub(crate) fn new(
        limiter: Arc<NodeLimiter>,
        overrides: Arc<OverrideStore>,
        policy_file: PolicyFile,
        identity: Identity,
        store_info: StoreInfo,
        readiness: Arc<Readiness>,
    ) -> Self {
        Self {
            limiter,
            overrides,
            policy_file,
            policy_load: Mutex::new(PolicyLoad { at: identity.started, error: None }),
            identity,
            store_info,
            warnings: Mutex::default(),
            readiness,
            refused: RefusedKeys::new(),
            live: Arc::new(Live::new()),
            history: LocalHistory::default(),
        }
    }

    pub(crate) fn limiter(&self) -> &NodeLimiter {
        &self.limiter
    }

    pub(crate) fn shared_limiter(&self) -> Arc<NodeLimiter> {
        Arc::clone(&self.limiter)
    }

    pub(crate) fn backend(&self) -> &Backend {
        self.limiter.store()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        self.limiter.observer()
    }

    /// Returns the overrides and the audit log.
    pub(crate) const fn overrides(&self) -> &Arc<OverrideStore> {
        &self.overrides
    }

    /// Returns the recently refused keys.
    pub(crate) const fn refused(&self) -> &RefusedKeys {
        &self.refused
    }

    /// Returns the live view.
    pub(crate) const fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Returns the events of this node.
    pub(crate) fn events(&self) -> &EventLog {
        self.metrics().store().events()
    }

    /// Adds the start of this node to the events.
    pub(crate) fn note_start(&self) {
        let address = &self.identity.address_text;
        let detail = format!("serves {address}, version {}", env!("CARGO_PKG_VERSION"));
        self.events().add(EventKind::NodeJoined, &detail);
    }

    /// Returns the history of this node.
    pub(crate) const fn history(&self) -> &LocalHistory {
        &self.history
    }

    pub(crate) const fn policy_file(&self) -> &PolicyFile {
        &self.policy_file
    }

    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn node_id(&self) -> &str {
        &self.identity.id
    }

    /// Returns the facts about the store.
    pub(crate) const fn store_info(&self) -> &StoreInfo {
        &self.store_info
    }

    /// Returns the warnings for operators.
    pub(crate) fn warnings(&self) -> MutexGuard<'_, Warnings> {
        self.warnings.lock()
    }

    /// Returns all warnings for operators, joined into one text.
    pub(crate) fn warning(&self) -> Option<String> {
        let occupancy = self.backend().memory().map(MemoryStore::occupancy);
        let is_full = occupancy.is_some_and(|occupancy| occupancy.untracked > 0);
        let full = is_full.then(|| {
            "the memory store is full and does not track new keys; raise --max-keys".to_owned()
        });
        let failure = self.metrics().store().warning();
        let all: Vec<String> = full.into_iter().chain(self.warnings().all(failure)).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    pub(crate) fn policy_load(&self) -> PolicyLoad {
        self.policy_load.lock().clone()
    }

    /// Activates a policy; counters are kept.
    pub(crate) fn set_policy(&self, policy: Policy) {
        let (version, rules) = (policy.version().to_owned(), policy.rules().len());
        self.limiter.set_policy(policy);
        let detail = format!("version {version} with {rules} rules is active");
        self.events().add(EventKind::PolicyReloaded, &detail);
        *self.policy_load.lock() = PolicyLoad { at: SystemClock::new().now(), error: None };
    }

    /// Records why the policy of the file is not active.
    pub(crate) fn note_policy_error(&self, reason: String) {
        let active = self.limiter.active_policy();
        let reason_line = reason.lines().next().unwrap_or_default();
        let version = active.policy().version();
        let detail = format!("{reason_line}; version {version} stays active");
        self.events().add(EventKind::PolicyRejected, &detail);
        self.policy_load.lock().error = Some(reason);
    }

    /// Returns whether this node should receive requests.
    pub(crate) fn is_ready(&self) -> bool {
        self.readiness.is_ready()
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Returns whether this node is in degraded mode because Redis is unavailable.
    pub(crate) fn is_degraded(&self) -> bool {
        self.backend().is_degraded()
    }
}
