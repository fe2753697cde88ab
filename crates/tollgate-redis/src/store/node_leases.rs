//! The leases of this node: sends the requests of the lease table, and ends leases when changes are published.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use tollgate::lease::{
    LeaseOutcome, LeaseReply, LeaseRequest, LeaseStats, LeaseTable, LeaseTime, TakeGrant,
    WantedLease,
};
use tollgate::{Decision, Key, Plan, Source, StoreError};

use super::{RedisStore, Shared, Takes};
use crate::call::{self, Verb};
use crate::subscription::Listener;

/// The lease table of a store, with its clocks.
#[derive(Debug)]
pub(super) struct NodeLeases {
    table: Arc<LeaseTable>,
    created: Instant,
}

impl NodeLeases {
    pub(super) fn new(max: usize) -> Self {
        Self { table: Arc::new(LeaseTable::new(max)), created: Instant::now() }
    }

    pub(super) fn listener(&self) -> Arc<dyn Listener> {
        Arc::clone(&self.table) as Arc<dyn Listener>
    }

    pub(super) fn end_subject(&self, subject: &str) {
        self.table.end_subject(subject);
    }

    fn now(&self) -> LeaseTime {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        LeaseTime::new(self.created.elapsed(), wall.unwrap_or_default())
    }
}

impl RedisStore {
    /// Returns the figures of the [leases](tollgate::lease) of this store.
    ///
    /// ```
    /// use tollgate_redis::{Address, RedisStore};
    ///
    /// let store = RedisStore::new(Address::local());
    /// assert_eq!(store.lease_stats().granted, 0);
    /// ```
    #[must_use]
    pub fn lease_stats(&self) -> LeaseStats {
        let leases = self.shared.leases.as_ref();
        leases.map_or_else(LeaseStats::default, |leases| leases.table.stats(leases.now()))
    }

    /// Returns how much of a key this process has [leased](tollgate::lease) and not spent. In Redis it counts as used.
    #[must_use]
    pub fn leased(&self, key: &Key<'_>) -> u64 {
        let leases = self.shared.leases.as_ref();
        leases.map_or(0, |leases| leases.table.leased(key, leases.now()))
    }

    /// Takes from a lease of the plan; else from the store, with a request for a lease if one is worth it.
    pub(super) async fn take_leased<'a>(
        &self,
        plan: &Plan<'a>,
        leases: &NodeLeases,
    ) -> Result<Decision<'a>, StoreError> {
        self.shared.events.start();
        match leases.table.spend(plan, self.shared.time.estimate(), leases.now()) {
            LeaseOutcome::NotLeased => {
                let epoch = leases.table.epoch(plan, leases.now());
                let decision = self.take_from_store(plan).await?;
                if !decision.is_allowed() && decision.source() == Source::Store {
                    leases.table.note_refusal(plan, &decision, epoch);
                }
                Ok(decision)
            }
            LeaseOutcome::Decided(decision, None) | LeaseOutcome::Refused(decision) => Ok(decision),
            LeaseOutcome::Decided(decision, Some(request)) => {
                self.lease_in_background(plan, request);
                Ok(decision)
            }
            LeaseOutcome::Request(request) => self.take_and_lease(plan, request).await,
        }
    }

    /// Refunds to a lease of the plan; `None` if there is none that has paid.
    pub(super) fn refund_leased<'a>(&self, plan: &Plan<'a>) -> Option<Decision<'a>> {
        let leases = self.shared.leases.as_ref()?;
        leases.table.refund(plan, self.shared.time.estimate(), leases.now())
    }

    /// Takes the cost of a plan and leases more, in one call.
    async fn take_and_lease<'a>(
        &self,
        plan: &Plan<'a>,
        request: LeaseRequest,
    ) -> Result<Decision<'a>, StoreError> {
        let refusals = self.shared.refusals.as_ref();
        let epoch = match refusals.map(|refusals| refusals.find(plan)) {
            Some(Ok(refusal)) => return Ok(refusal),
            Some(Err(epoch)) => epoch,
            None => None,
        };
        let reply = match self.lease_in_store(plan, request.wanted()).await {
            Ok(Some(reply)) => reply,
            Ok(None) => {
                drop(request);
                return self.take_from_store(plan).await;
            }
            Err(error) => {
                request.finish(None);
                return Err(error);
            }
        };
        let decision = reply.decision(plan, request.wanted());
        request.finish(Some(&reply));
        if let (Some(refusals), Some(epoch)) = (refusals, epoch)
            && !decision.is_allowed()
        {
            refusals.insert(plan, &decision, &epoch);
        }
        Ok(decision)
    }

    /// Requests a lease while the node still spends another one. Without a runtime, no lease is requested.
    fn lease_in_background(&self, plan: &Plan<'_>, request: LeaseRequest) {
        let Ok(runtime) = Handle::try_current() else { return };
        let takes = self.shared.takes_of_lease(plan, request.wanted());
        let shared = Arc::clone(&self.shared);
        runtime.spawn(async move {
            let hold = request.wanted().hold();
            let reply = shared.lease(hold, || takes.clone()).await.ok().flatten();
            request.finish(reply.as_ref());
        });
    }

    /// Leases from the store, or takes the costs of the request. `None`, with nothing taken, if the keys are on several
    /// nodes of a cluster, or the plan cannot be leased.
    pub(super) async fn lease_in_store(
        &self,
        plan: &Plan<'_>,
        wanted: &WantedLease,
    ) -> Result<Option<LeaseReply>, StoreError> {
        if !wanted.fits(plan) {
            return Ok(None);
        }
        self.shared.lease(wanted.hold(), || self.shared.takes_of_lease(plan, wanted)).await
    }
}

impl Shared {
    /// Encodes the takes of a plan with the costs and amounts of a request.
    fn takes_of_lease(&self, plan: &Plan<'_>, wanted: &WantedLease) -> Takes {
        let takes = call::takes_of(plan, &self.keys, self.time.estimate());
        let amounts = wanted.costs().iter().zip(wanted.amounts());
        takes
            .into_iter()
            .zip(amounts)
            .map(|(take, (cost, amount))| take.leasing(*cost, *amount))
            .collect()
    }

    /// Sends a request for a lease. `None` if the keys are on several nodes of a cluster: nothing was taken.
    async fn lease(
        &self,
        hold: Duration,
        takes: impl Fn() -> Takes,
    ) -> Result<Option<LeaseReply>, StoreError> {
        let figures = self.figures_on_node(Verb::Lease { hold }, takes).await?;
        Ok(figures.map(|figures| {
            let takes = figures.leased.iter().zip(&figures.replies);
            let grants = takes.map(|(amount, reply)| TakeGrant { amount: *amount, reply: *reply });
            LeaseReply::new(figures.at, grants)
        }))
    }
}

impl Listener for LeaseTable {
    fn subscribed(&self) {
        self.enable();
    }

    fn message(&self, payload: &[u8]) {
        match payload.split_first() {
            Some((b's', subject)) => {
                if let Ok(subject) = std::str::from_utf8(subject) {
                    self.end_subject(subject);
                }
            }
            // An override may change the limits of any client.
            _ => self.end_all(),
        }
    }

    fn lost(&self) {
        self.disable();
    }
}
