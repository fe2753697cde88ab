//! The store of one process: what `RedisStore` does with its leases and its refusal cache, on the simulated network.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tollgate::algorithm::Reply;
use tollgate::lease::{LeaseOutcome, LeaseRequest, LeaseTable};
use tollgate::{
    Clock, Decision, Key, Listing, Page, Permit, Plan, Source, Status, Store, StoreError,
    StoreErrorKind, Timestamp,
};

use super::refusals::Refusals;
use super::request::{Answer, Operation, Request, Waiter};
use super::world::{World, key_of};

/// Maximum number of leased plans, as in `RedisStore`.
const MAX_LEASES: usize = 4096;

#[derive(Debug)]
pub(super) struct NodeStore<'w> {
    world: &'w World,
    node: usize,
    pub(super) leases: LeaseTable,
    refusals: Refusals,
    is_subscribed: AtomicBool,
}

impl<'w> NodeStore<'w> {
    pub(super) fn new(world: &'w World, node: usize) -> Self {
        let leases = LeaseTable::new(MAX_LEASES);
        let store = Self {
            world,
            node,
            leases,
            refusals: Refusals::default(),
            is_subscribed: AtomicBool::new(false),
        };
        store.subscribed();
        store
    }

    pub(super) fn subscribed(&self) {
        self.leases.enable();
        self.refusals.clear();
        self.is_subscribed.store(true, Ordering::Relaxed);
    }

    pub(super) fn subscription_lost(&self) {
        self.leases.disable();
        self.refusals.clear();
        self.is_subscribed.store(false, Ordering::Relaxed);
    }

    /// Takes from a lease of the plan; else from the store, with a request for a lease if one is worth it.
    async fn take_leased<'a>(&self, key: u32, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        match self.leases.spend(plan, self.world.clock.now(), self.world.lease_time()) {
            LeaseOutcome::NotLeased => {
                let epoch = self.leases.epoch(plan, self.world.lease_time());
                let decision = self.take_cached(key, plan, None).await?;
                if !decision.is_allowed() && decision.source() == Source::Store {
                    self.leases.note_refusal(plan, &decision, epoch);
                }
                Ok(decision)
            }
            LeaseOutcome::Decided(decision, None) | LeaseOutcome::Refused(decision) => Ok(decision),
            LeaseOutcome::Decided(decision, Some(request)) => {
                self.lease_in_background(key, request);
                Ok(decision)
            }
            LeaseOutcome::Request(request) => self.take_cached(key, plan, Some(request)).await,
        }
    }

    fn lease_in_background(&self, key: u32, lease: LeaseRequest) {
        let operation = Operation::Lease(lease.wanted().clone());
        self.submit(Request { key, operation }, Waiter::Lease(lease));
    }

    /// Takes, with a request for a lease if there is one, unless the refusal cache refuses the plan.
    async fn take_cached<'a>(
        &self,
        key: u32,
        plan: &Plan<'a>,
        lease: Option<LeaseRequest>,
    ) -> Result<Decision<'a>, StoreError> {
        let begun = self.world.now();
        let is_subscribed = self.is_subscribed.load(Ordering::Relaxed);
        if is_subscribed && let Some(reply) = self.refusals.find(key, begun) {
            let at = Timestamp::from_micros(begun);
            return Ok(decision(plan, at, reply).from_source(Source::Cache));
        }
        let wanted = lease.as_ref().map(|lease| lease.wanted().clone());
        let operation = wanted.map_or(Operation::Take, Operation::Lease);
        let answer = self.request(Request { key, operation }).await;
        let decision = match answer {
            Answer::Replied(at, reply) => decision(plan, at, reply),
            Answer::Leased(reply) => {
                let Some(lease) = lease else { return Err(failure(StoreErrorKind::Incompatible)) };
                let decision = reply.decision(plan, lease.wanted());
                lease.finish(Some(&reply));
                decision
            }
            Answer::Failed(kind) => {
                if let Some(lease) = lease {
                    lease.finish(None);
                }
                return Err(failure(kind));
            }
        };
        let is_subscribed = self.is_subscribed.load(Ordering::Relaxed);
        if is_subscribed && let Some(status) = decision.statuses().first() {
            self.refusals.insert(key, begun, status);
        }
        Ok(decision)
    }

    fn submit(&self, request: Request, waiter: Waiter) {
        let at = (self.world.now(), &self.world.scenario);
        self.world.network().submit(self.node, (request, waiter), at);
    }

    /// Sends a request, and waits for the answer.
    async fn request(&self, request: Request) -> Answer {
        let ticket = Ticket { world: self.world, number: self.world.network().tickets.create() };
        self.submit(request, Waiter::Task(ticket.number));
        poll_fn(|_| match ticket.world.network().tickets.take_answer(ticket.number) {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }

    async fn decide<'a>(
        &self,
        plan: &Plan<'a>,
        operation: Operation,
    ) -> Result<Decision<'a>, StoreError> {
        let (key, operation) = match key_of(plan) {
            Some(key) => (key, operation),
            None => (0, Operation::Probe),
        };
        match self.request(Request { key, operation }).await {
            Answer::Replied(at, reply) => Ok(decision(plan, at, reply)),
            Answer::Leased(_) => Err(failure(StoreErrorKind::Incompatible)),
            Answer::Failed(kind) => Err(failure(kind)),
        }
    }

    pub(super) fn report(&self) {
        self.submit(Request { key: 0, operation: Operation::Report }, Waiter::None);
    }
}

/// A request that waits for its answer.
struct Ticket<'w> {
    world: &'w World,
    number: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.world.network().tickets.remove(self.number);
    }
}

fn decision<'a>(plan: &Plan<'a>, at: Timestamp, reply: Reply) -> Decision<'a> {
    let status = |take: &tollgate::Take<'a>| Status::new(take.key().limit(), take.mode(), reply);
    Decision::new(at, plan.takes().iter().map(status))
}

fn failure(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, format!("{kind:?}"))
}

fn unsupported<T>() -> Result<T, StoreError> {
    Err(failure(StoreErrorKind::Unsupported))
}

impl Store for NodeStore<'_> {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        match key_of(plan) {
            Some(key) if self.world.limit().lease_hold().is_some() => {
                self.take_leased(key, plan).await
            }
            Some(key) => self.take_cached(key, plan, None).await,
            None => self.decide(plan, Operation::Take).await,
        }
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.decide(plan, Operation::Peek).await
    }

    async fn refund<'a>(&self, _: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        unsupported()
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        self.decide(plan, Operation::Debit(age)).await
    }

    async fn pause(&self, _: &Key<'_>, _: Duration) -> Result<(), StoreError> {
        unsupported()
    }

    async fn reset(&self, _: &Key<'_>) -> Result<(), StoreError> {
        unsupported()
    }

    async fn release(&self, _: &Permit) -> Result<bool, StoreError> {
        unsupported()
    }

    async fn renew(&self, _: &Permit) -> Result<Option<Timestamp>, StoreError> {
        unsupported()
    }

    async fn stats<'a>(&self, _: &Key<'a>) -> Result<Status<'a>, StoreError> {
        unsupported()
    }

    async fn list(&self, _: &Listing) -> Result<Page, StoreError> {
        unsupported()
    }
}
