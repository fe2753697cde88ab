//! A store that fails on demand.

use std::future::poll_fn;
use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use tollgate::reservation::{Draft, FinalCosts, Record, ReservationToken, Reserved, Settled};
use tollgate::{
    Decision, Key, Listing, Page, Permit, Plan, Status, Store, StoreError, StoreErrorKind,
    Timestamp,
};

/// Fault of a [`FaultyStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreFault {
    /// Calls succeed.
    #[default]
    None,
    /// Calls fail without effect.
    Unreachable,
    /// Calls time out without effect.
    RequestLost,
    /// Calls take effect, and their reply is lost.
    ReplyLost,
    /// Calls are not sent, because too many calls of this process wait for a store that replies.
    Overloaded,
    /// Calls fail because the stored value cannot be read.
    Unreadable,
    /// Calls take effect, and their reply waits until another fault is set.
    Suspended,
}

/// A store whose calls fail as configured.
#[derive(Debug)]
pub struct FaultyStore<S> {
    store: S,
    /// Fault, and number of calls that still succeed before it.
    fault: Mutex<(StoreFault, u64)>,
    calls: AtomicU64,
    /// Tasks that wait for the end of [`StoreFault::Suspended`].
    suspended: Mutex<Vec<Waker>>,
}

impl<S> FaultyStore<S> {
    /// Wraps a store; without faults at first.
    pub fn new(store: S) -> Self {
        Self {
            store,
            fault: Mutex::default(),
            calls: AtomicU64::new(0),
            suspended: Mutex::default(),
        }
    }

    /// Returns the wrapped store, which never fails.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Sets the fault of all following calls.
    pub fn set(&self, fault: StoreFault) {
        self.fail_after(0, fault);
    }

    /// Sets the fault that begins after this number of successful calls.
    pub fn fail_after(&self, calls: u64, fault: StoreFault) {
        *self.fault.lock().expect("lock is not poisoned") = (fault, calls);
        let suspended = mem::take(&mut *self.suspended.lock().expect("lock is not poisoned"));
        suspended.into_iter().for_each(Waker::wake);
    }

    /// Returns the fault of the next call.
    fn next_fault(&self) -> StoreFault {
        let mut state = self.fault.lock().expect("lock is not poisoned");
        let (fault, successes) = *state;
        state.1 = successes.saturating_sub(1);
        if successes == 0 { fault } else { StoreFault::None }
    }

    /// Returns the number of calls, failed ones included.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    async fn call<T>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let fault = self.next_fault();
        let kind = match fault {
            StoreFault::None => return operation.await,
            StoreFault::Unreachable => StoreErrorKind::Unavailable,
            StoreFault::RequestLost => StoreErrorKind::Timeout,
            StoreFault::ReplyLost => {
                drop(operation.await);
                StoreErrorKind::Timeout
            }
            StoreFault::Overloaded => StoreErrorKind::Overloaded,
            StoreFault::Unreadable => StoreErrorKind::Incompatible,
            StoreFault::Suspended => {
                let reply = operation.await;
                self.resumed().await;
                return reply;
            }
        };
        Err(StoreError::new(kind, format!("{fault:?}")))
    }

    /// Waits until the fault is not [`StoreFault::Suspended`].
    async fn resumed(&self) {
        poll_fn(|context| {
            // Held over the check, so that no wake-up is missed.
            let mut suspended = self.suspended.lock().expect("lock is not poisoned");
            let (fault, _) = *self.fault.lock().expect("lock is not poisoned");
            if fault != StoreFault::Suspended {
                return Poll::Ready(());
            }
            suspended.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl<S: Store> Store for FaultyStore<S> {
    async fn reserve<'a>(
        &self,
        plan: &Plan<'a>,
        draft: &Draft,
    ) -> Result<Reserved<'a>, StoreError> {
        self.call(self.store.reserve(plan, draft)).await
    }

    async fn settle(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, StoreError> {
        self.call(self.store.settle(token, tenant, finals)).await
    }

    async fn renew_reservation(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.call(self.store.renew_reservation(token, tenant)).await
    }

    async fn adopt_reservation(&self, record: &Record, age: Duration) -> Result<(), StoreError> {
        self.call(self.store.adopt_reservation(record, age)).await
    }

    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.call(self.store.take(plan)).await
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.call(self.store.peek(plan)).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.call(self.store.refund(plan)).await
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        self.call(self.store.debit(plan, age)).await
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        self.call(self.store.pause(key, length)).await
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        self.call(self.store.reset(key)).await
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        self.call(self.store.release(permit)).await
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        self.call(self.store.renew(permit)).await
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        self.call(self.store.stats(key)).await
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.call(self.store.list(listing)).await
    }
}
