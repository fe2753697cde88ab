//! A store that replies later than it decides, like a store over a network.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tollgate::reservation::{Draft, FinalCosts, ReservationToken, Reserved, Settled};
use tollgate::{
    Decision, Key, Listing, MemoryStore, Page, Permit, Plan, Status, Store, StoreError, Timestamp,
};

/// A memory store whose replies wait until the test releases them.
#[derive(Debug, Clone, Default)]
pub(crate) struct DelayedStore {
    store: Arc<MemoryStore>,
    replies: Arc<Gate>,
}

#[derive(Debug)]
struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl DelayedStore {
    /// Releases this many replies.
    pub(crate) fn release_replies(&self, count: usize) {
        self.replies.0.add_permits(count);
    }

    /// Releases all replies from now on.
    pub(crate) fn release_all(&self) {
        self.replies.0.close();
    }

    async fn delayed<T>(&self, reply: T) -> Result<T, StoreError> {
        if let Ok(permit) = self.replies.0.acquire().await {
            permit.forget();
        }
        Ok(reply)
    }
}

impl Store for DelayedStore {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let reply = self.store.take(plan).await?;
        self.delayed(reply).await
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let reply = self.store.peek(plan).await?;
        self.delayed(reply).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let reply = self.store.refund(plan).await?;
        self.delayed(reply).await
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        let reply = self.store.debit(plan, age).await?;
        self.delayed(reply).await
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        self.store.pause(key, length).await?;
        self.delayed(()).await
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        self.store.reset(key).await?;
        self.delayed(()).await
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        let reply = self.store.release(permit).await?;
        self.delayed(reply).await
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        let reply = self.store.renew(permit).await?;
        self.delayed(reply).await
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        let reply = self.store.stats(key).await?;
        self.delayed(reply).await
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        let reply = self.store.list(listing).await?;
        self.delayed(reply).await
    }

    async fn reserve<'a>(
        &self,
        plan: &Plan<'a>,
        draft: &Draft,
    ) -> Result<Reserved<'a>, StoreError> {
        let reply = self.store.reserve(plan, draft).await?;
        self.delayed(reply).await
    }

    async fn settle(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, StoreError> {
        let reply = self.store.settle(token, tenant, finals).await?;
        self.delayed(reply).await
    }
}
