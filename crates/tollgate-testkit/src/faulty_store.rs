//! A store that fails when it is told to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate::{
    Decision, Key, Listing, Page, Permit, Plan, Status, Store, StoreError, StoreErrorKind,
    Timestamp,
};

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreFault {
    /// Nothing.
    #[default]
    None,
    /// It cannot be reached: nothing happens there.
    Unreachable,
    /// It does what it is asked, and its answer is lost.
    ReplyLost,
    /// It cannot read what it holds.
    Unreadable,
}

/// A store with trouble.
#[derive(Debug)]
pub struct FaultyStore<S> {
    store: S,
    /// What is wrong with it, and after how many questions more.
    trouble: Mutex<(StoreFault, u64)>,
    asked: AtomicU64,
}

impl<S> FaultyStore<S> {
    /// This store, without trouble so far.
    pub fn new(store: S) -> Self {
        Self { store, trouble: Mutex::default(), asked: AtomicU64::new(0) }
    }

    /// The store itself, which always answers.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// From now on this is wrong with it.
    pub fn set(&self, trouble: StoreFault) {
        self.fail_after(0, trouble);
    }

    /// It answers so many questions more, and then this is wrong with it.
    pub fn fail_after(&self, questions: u64, trouble: StoreFault) {
        *self.trouble.lock().expect("nobody panics holding it") = (trouble, questions);
    }

    fn trouble(&self) -> StoreFault {
        let mut held = self.trouble.lock().expect("nobody panics holding it");
        let (trouble, left) = *held;
        held.1 = left.saturating_sub(1);
        if left == 0 { trouble } else { StoreFault::None }
    }

    /// How often it was asked, whatever came of it.
    pub fn calls(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    async fn answer<T>(
        &self,
        happens: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let trouble = self.trouble();
        let kind = match trouble {
            StoreFault::None => return happens.await,
            StoreFault::Unreachable => StoreErrorKind::Unavailable,
            StoreFault::ReplyLost => {
                drop(happens.await);
                StoreErrorKind::Timeout
            }
            StoreFault::Unreadable => StoreErrorKind::Incompatible,
        };
        Err(StoreError::new(kind, format!("{trouble:?}")))
    }
}

impl<S: Store> Store for FaultyStore<S> {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.answer(self.store.take(plan)).await
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.answer(self.store.peek(plan)).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.answer(self.store.refund(plan)).await
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        self.answer(self.store.debit(plan, age)).await
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        self.answer(self.store.pause(key, length)).await
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        self.answer(self.store.reset(key)).await
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        self.answer(self.store.release(permit)).await
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        self.answer(self.store.renew(permit)).await
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        self.answer(self.store.stats(key)).await
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.answer(self.store.list(listing)).await
    }
}
