//! A store that answers later than it decides, as one over a network does.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tollgate::{
    Decision, Key, Listing, MemoryStore, Page, Permit, Plan, Status, Store, StoreError, Timestamp,
};

/// Memory whose answers wait until they are let out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Later {
    store: Arc<MemoryStore>,
    answers: Arc<Gate>,
}

#[derive(Debug)]
struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Later {
    /// Lets so many answers out.
    pub(crate) fn answer(&self, answers: usize) {
        self.answers.0.add_permits(answers);
    }

    /// Lets all answers out from now on.
    pub(crate) fn answer_all(&self) {
        self.answers.0.close();
    }

    async fn out<T>(&self, answer: T) -> Result<T, StoreError> {
        if let Ok(permit) = self.answers.0.acquire().await {
            permit.forget();
        }
        Ok(answer)
    }
}

impl Store for Later {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let answer = self.store.take(plan).await?;
        self.out(answer).await
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let answer = self.store.peek(plan).await?;
        self.out(answer).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let answer = self.store.refund(plan).await?;
        self.out(answer).await
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        let answer = self.store.debit(plan, age).await?;
        self.out(answer).await
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        self.store.pause(key, length).await?;
        self.out(()).await
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        self.store.reset(key).await?;
        self.out(()).await
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        let answer = self.store.release(permit).await?;
        self.out(answer).await
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        let answer = self.store.renew(permit).await?;
        self.out(answer).await
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        let answer = self.store.stats(key).await?;
        self.out(answer).await
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        let answer = self.store.list(listing).await?;
        self.out(answer).await
    }
}
