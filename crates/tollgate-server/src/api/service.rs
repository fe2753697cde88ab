//! The service of a node, shared by all front ends.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::futures::Notified;
use tollgate::{ActivePolicy, FallbackStore, MemoryStore, Observer};

use crate::access::{Credentials, Guard, Role};
use crate::error::ApiError;
use crate::metrics::{HttpRequests, Metrics, ScrapeContext};
use crate::node::NodeContext;
use crate::node::live::Live;
use crate::node::reload::ReloadRequests;
use crate::telemetry::Traces;

/// The service of a node. All front ends call the same instance.
#[derive(Debug)]
pub struct Service {
    node: Arc<NodeContext>,
    guard: Guard,
    reloads: ReloadRequests,
    traces: Traces,
}

impl Service {
    pub(crate) const fn new(
        node: Arc<NodeContext>,
        guard: Guard,
        reloads: ReloadRequests,
        traces: Traces,
    ) -> Self {
        Self { node, guard, reloads, traces }
    }

    /// Returns an error unless the credentials permit calls of this role. `peer` is the TCP peer, whose failed attempts
    /// are limited.
    ///
    /// # Errors
    ///
    /// `TokenMissing` without a token, `Unauthorized` for an invalid one, `TooMany` after too many failed attempts.
    pub fn authenticate(
        &self,
        role: Role,
        credentials: &Credentials<'_>,
        peer: IpAddr,
    ) -> Result<(), ApiError> {
        self.guard.admit(role, credentials, peer).map(drop)
    }

    /// Returns whether calls of this role need no token.
    #[must_use]
    pub fn is_open(&self, role: Role) -> bool {
        self.guard.is_open(role)
    }

    /// Returns whether this node should receive requests. During a shutdown it still serves them, but its responses
    /// should close the connection, so that clients reconnect to another node.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.node.is_ready()
    }

    /// Waits until [`is_ready`](Self::is_ready) may have changed.
    pub(crate) fn readiness_changed(&self) -> Notified<'_> {
        self.node.readiness().changed()
    }

    /// Returns whether decisions are made in Redis, so that concurrent ones share calls.
    pub(crate) fn has_shared_store(&self) -> bool {
        self.node.backend().redis().is_some()
    }

    /// Returns whether this node decides without Redis, because it is unavailable.
    pub(crate) fn is_degraded(&self) -> bool {
        self.node.is_degraded()
    }

    /// Returns all metrics as Prometheus text.
    #[must_use]
    pub fn metrics(&self) -> String {
        let active = self.node.limiter().active_policy();
        self.node.metrics().render(&ScrapeContext {
            occupancy: self.node.backend().memory().map(MemoryStore::occupancy),
            leases: self.node.backend().lease_stats(),
            breaker: self.node.backend().fallback().map(FallbackStore::breaker),
            guard: &self.guard,
            overrides: active.overrides().len(),
            policy: active.policy().version(),
            readiness: self.node.readiness(),
            watchers: self.node.live().watchers(),
            started: self.node.identity().started,
        })
    }

    /// Returns the active policy, for front ends that extract its facts from requests.
    pub(crate) fn active_policy(&self) -> Arc<ActivePolicy<<Metrics as Observer>::Handles>> {
        self.node.limiter().active_policy()
    }

    /// Returns the counters of HTTP requests.
    pub(crate) fn http_requests(&self) -> &HttpRequests {
        self.node.metrics().http_requests()
    }

    pub(crate) const fn guard(&self) -> &Guard {
        &self.guard
    }

    pub(crate) const fn traces(&self) -> &Traces {
        &self.traces
    }

    /// Returns the live view.
    pub(crate) fn live(&self) -> &Arc<Live> {
        self.node.live()
    }

    pub(super) const fn node(&self) -> &Arc<NodeContext> {
        &self.node
    }

    pub(super) const fn reloads(&self) -> &ReloadRequests {
        &self.reloads
    }
}
